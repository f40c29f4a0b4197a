//! Variables in classes, in their methods and in other functions of C++.

use super::*;

const CLASSES: &str = r#"
namespace outer {
struct counted {
	struct each { int low, high; };
	static long of_class[2];
	static inline volatile long of_class_inline[2] = { 7, 8 };
	long method() { static each of_method[2]; return ++of_method[of_class_inline[0] & 1].high; }
};
long counted::of_class[2] = { 3, 4 };
template <class T> struct made { static volatile T of_template[2]; };
template <class T> volatile T made<T>::of_template[2] = { 5, 6 };
enum kind { one, two };
namespace { volatile long of_namespace[2]; }
}
struct behind { long first, second; };
volatile long of_file[2];
__attribute__((noinline)) long uses(int argc)
{
	enum here { three, four };
	struct within {
		long method() { static volatile long of_inner_method[3]; return ++of_inner_method[1]; }
		static long plain(long x) { static outer::counted::each of_inner_function[2]; return of_inner_function[x & 1].low += x; }
	};
	static volatile long of_function[2];
	outer::counted counted;
	return within().method() + within::plain(argc) + outer::of_namespace[1]++ + of_file[three]++ + of_function[four]++
		+ counted.method() + ++outer::counted::of_class[argc & 1] + outer::counted::of_class_inline[1]++
		+ outer::made<long>::of_template[1]++;
}
int main(int argc, char **) { return uses(argc); }
"#;

#[test]
fn the_types_of_variables_in_classes_and_functions_are_found_in_cpp() {
    for compiler in ["g++", "clang++"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            // Only gcc writes what is passed over by.
            testing::skip!("{compiler}: not installed");
            continue;
        }
        for options in [
            ["-O0", "-gdwarf-4"],
            ["-O2", "-gdwarf-4"],
            ["-O0", "-gdwarf-5"],
            ["-O2", "-gdwarf-5"],
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let (source, path) = (folder.path().join("data.cc"), folder.path().join("data"));
            std::fs::write(&source, CLASSES).expect("written");
            let built = Command::new(compiler)
                .args(options)
                .arg("-std=c++17")
                .arg("-o")
                .args([&path, &source])
                .status();
            assert!(built.expect(compiler).success(), "{compiler} {options:?}");
            let bytes = std::fs::read(&path).expect("readable");
            let symbols = SymbolFile::open(&path, &SymbolSearch::nowhere()).expect("ELF");
            let mut layout = DataLayout::of("data", &bytes).expect("ELF");
            layout.add_symbols(symbols.data_symbols());
            layout.add_debug_info(&bytes).expect("DWARF");
            for name in [
                "of_class",
                "of_class_inline",
                "of_method",
                "of_template",
                "of_namespace",
                "of_file",
                "of_inner_method",
                "of_inner_function",
                "of_function",
            ] {
                let is_it = |one: &&str| one.rsplit("::").next() == Some(name);
                let mut found = layout.variables().iter().filter(|one| is_it(&one.name.as_str()));
                let variable = found
                    .next()
                    .unwrap_or_else(|| panic!("{compiler} {options:?}: no {name}"));
                let (_, second) = layout.piece_at(variable.address + 8).expect("an element");
                assert!(
                    second.path.starts_with("[1]"),
                    "{compiler} {options:?}: {name}: {second:?}"
                );
            }
        }
    }
}
