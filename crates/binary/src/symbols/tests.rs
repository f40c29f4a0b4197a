use super::*;

fn with_stubs(stubs: &[(u64, u64, &str)]) -> SymbolFile {
    let own = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
    let mut file = SymbolFile::from_bytes("own", &own).expect("a file");
    let stub = |(start, size, name): &(u64, u64, &str)| Stub {
        start: *start,
        size: *size,
        name: (*name).to_owned(),
    };
    file.stubs = stubs.iter().map(stub).collect();
    file
}

#[test]
fn stubs_that_lie_over_each_other_or_at_the_end_of_all_addresses_are_named_alike_as_far_as_they_are() {
    const FAR: u64 = u64::MAX - 64;
    let file = with_stubs(&[
        (FAR, 16, "first@plt"),
        (FAR + 8, 16, "over@plt"),
        (FAR + 56, 16, "last@plt"),
    ]);
    assert_eq!(file.named_alike(FAR + 2), Some(FAR + 2..FAR + 8));
    assert_eq!(file.named_alike(FAR + 8), Some(FAR + 8..FAR + 24));
    assert_eq!(file.named_alike(FAR + 56), Some(FAR + 56..u64::MAX));
    for at in FAR..u64::MAX {
        let name = |svma| file.function(svma).map(|function| function.name);
        for alike in file.named_alike(at).into_iter().flatten() {
            assert_eq!(name(alike), name(at), "{at:x} and {alike:x}");
        }
    }
}
