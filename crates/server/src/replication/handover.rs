//! The script that a Galera node runs to be given another's data before it joins.
//!
//! All nodes start on the same data, so nothing is given but the position: the donor writes it where the joiner waits for it. So
//! neither rsync nor the distribution's scripts are needed, and a start takes no longer than on a copy that is there already. The words
//! that script and server exchange are those of `wsrep_sst_rsync`.

use crate::error::Error;
use scaleprof_guard::replace;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What the setting `wsrep_sst_method` calls it; the program is `wsrep_sst_` and this.
pub(super) const METHOD: &str = "scaleprof";

const SCRIPT: &str = r#"#!/bin/sh
# Written by scaleprof: all nodes have the same data, and only the position is handed over.
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --address) address=$2; shift ;;
        --datadir) data=$2; shift ;;
        --gtid) position=$2; shift ;;
    esac
    shift
done
case $role in
    joiner)
        place=$data/scaleprof-handed-over
        rm -f "$place"
        echo "ready 127.0.0.1:1/$place"
        turns=0
        until [ -s "$place" ]; do
            turns=$((turns + 1))
            [ "$turns" -lt 1200 ] || exit 110
            sleep 0.05
        done
        cat "$place"
        rm -f "$place"
        ;;
    donor)
        place=${address#*/}
        echo "$position" >"$place.part" && mv "$place.part" "$place" || exit 1
        echo "done $position"
        ;;
    *) exit 22 ;;
esac
"#;

/// Writes the script into a folder, which has to be among those where the server looks for programs.
pub(super) fn write(folder: &Path) -> Result<(), Error> {
    let path = folder.join(format!("wsrep_sst_{METHOD}"));
    replace(&path, |file| file.write_all(SCRIPT.as_bytes())).map_err(Error::system("write", &path))?;
    let allowed = Permissions::from_mode(0o755);
    fs::set_permissions(&path, allowed).map_err(Error::system("make executable", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::Command;

    #[test]
    fn the_joiner_says_the_position_that_the_donor_gave() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path()).expect("written");
        let data = folder.path().join("data of one");
        fs::create_dir(&data).expect("a folder");
        let script = folder.path().join("wsrep_sst_scaleprof");
        let run = |words: &[&str]| {
            let mut command = Command::new(&script);
            command
                .args(words)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("runs")
        };
        let data = data.to_str().expect("a name");
        let mut joiner = run(&["--role", "joiner", "--datadir", data]);
        let address = format!("127.0.0.1:1/{data}/scaleprof-handed-over");
        // As the server does: a donor is asked for only once the joiner has said that it is ready, for until
        // then it removes what an earlier handover left.
        let mut heard = BufReader::new(joiner.stdout.take().expect("piped"));
        let mut ready = String::new();
        heard.read_line(&mut ready).expect("a line");
        assert_eq!(ready, format!("ready {address}\n"));
        let donor = run(&["--role", "donor", "--address", &address, "--gtid", "uuid:7", "--bypass"]);
        let donor = donor.wait_with_output().expect("ends");
        assert_eq!(String::from_utf8_lossy(&donor.stdout), "done uuid:7\n");
        let mut position = String::new();
        heard.read_to_string(&mut position).expect("text");
        assert_eq!(position, "uuid:7\n");
        assert!(joiner.wait().expect("ends").success());
    }
}
