//! An apt of our own: everything it writes lies in one folder, and the machine's apt and dpkg are not touched.
//!
//! Signatures are checked as ever, by the distribution's keyring that is installed here. The list of installed packages is empty, so
//! that a simulated installation names everything that a package needs.

use crate::child::{self, Ended};
use crate::error::Error;
use crate::progress::Watcher;
use crate::source::{Distribution, PackageSource};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A package of a simulated installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Where a distribution's packages are, and who signs them.
#[derive(Debug, PartialEq, Eq)]
struct Archive {
    uri: String,
    keyring: PathBuf,
}

/// An apt that reads one suite.
pub(crate) struct PrivateApt {
    configuration: PathBuf,
    shown: String,
}

impl PrivateApt {
    /// Reads the lists of a suite's packages into a folder.
    ///
    /// # Errors
    /// apt or the keyring is missing; the suite is not there, or its signature is wrong.
    pub(crate) fn open(root: &Path, from: &PackageSource, watcher: &mut Watcher<'_>) -> Result<Self, Error> {
        let shown = format!("{} {}", from.distribution.word(), from.suite);
        let Some(top) = root.to_str().filter(|path| !path.contains(['"', '\n', ' '])) else {
            return Err(Error::Packages {
                what: shown,
                reason: format!("apt cannot work in {}, whose name has quotes or spaces", root.display()),
            });
        };
        let machine = MachineApt::ask(watcher)?;
        let archive = machine.archive(from.distribution)?;
        for folder in [
            "etc/apt.conf.d",
            "etc/preferences.d",
            "etc/sources.list.d",
            "state/lists/partial",
            "cache/archives/partial",
        ] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(Error::system("make", &path))?;
        }
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            fs::write(&path, text).map_err(Error::system("write", &path))
        };
        write("state/status", "")?;
        let components = match from.distribution {
            Distribution::Debian => "main",
            Distribution::Ubuntu => "main universe",
        };
        write(
            "etc/sources.list",
            &format!(
                "deb [arch={} signed-by={}] {} {} {components}\n",
                machine.architecture,
                archive.keyring.display(),
                archive.uri,
                from.suite
            ),
        )?;
        // It may hold the password of a proxy.
        let private = root.join("apt.conf");
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&private)
            .and_then(|mut file| {
                file.write_all((configuration(top, &machine.architecture) + &machine.way_out).as_bytes())
            })
            .map_err(Error::system("write", &private))?;
        let apt = PrivateApt {
            configuration: root.join("apt.conf"),
            shown,
        };
        let ended = apt.run(&["-qq", "update"], None, watcher, |_, _| {})?;
        // Of a suite that is not there apt may only warn.
        match ended.status.success() && !ended.errors.contains("E:") {
            true => Ok(apt),
            false => Err(apt.refused(&format!(
                "cannot read the suite from {}: {}",
                archive.uri,
                ended.complaint()
            ))),
        }
    }

    fn run(
        &self,
        arguments: &[&str],
        folder: Option<&Path>,
        watcher: &mut Watcher<'_>,
        turn: impl FnMut(&str, &mut Watcher<'_>),
    ) -> Result<Ended, Error> {
        let mut command = child::program("apt-get");
        command
            .env("APT_CONFIG", &self.configuration)
            .env("LC_ALL", "C.UTF-8")
            .args(arguments);
        command.current_dir(folder.unwrap_or(Path::new("/")));
        child::run(&mut command, "apt-get", "apt", watcher, turn)
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Packages {
            what: self.shown.clone(),
            reason: reason.to_owned(),
        }
    }

    /// All that would be installed for these packages.
    ///
    /// # Errors
    /// The suite has one of them not.
    pub(crate) fn needed_for(&self, packages: &[&str], watcher: &mut Watcher<'_>) -> Result<Vec<Package>, Error> {
        let mut arguments = vec!["install", "--simulate", "--no-install-recommends"];
        arguments.extend(packages);
        let ended = self.run(&arguments, None, watcher, |_, _| {})?;
        match ended.status.success() {
            true => Ok(simulated(&ended.output)),
            false => Err(self.refused(&ended.complaint())),
        }
    }

    /// Downloads packages into a folder; those that are there whole are left alone.
    ///
    /// # Errors
    /// One of them cannot be had, or is not the one that was signed.
    pub(crate) fn download(&self, packages: &[String], to: &Path, watcher: &mut Watcher<'_>) -> Result<(), Error> {
        let mut arguments = vec!["-qq", "-o", "APT::Status-Fd=1", "download"];
        arguments.extend(packages.iter().map(String::as_str));
        let ended = self.run(&arguments, Some(to), watcher, |text, watcher| {
            if let Some(percent) = text.lines().rev().find_map(percent_done) {
                watcher.progress.share(percent / 100.0);
            }
        })?;
        match ended.status.success() {
            true => Ok(()),
            false => Err(self.refused(&ended.complaint())),
        }
    }
}

/// Of `dlstatus:3:12.5:Retrieving file 3 of 20`, apt's README.progress-reporting.
fn percent_done(line: &str) -> Option<f64> {
    let percent: f64 = line.strip_prefix("dlstatus:")?.split(':').nth(1)?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// Reads `Inst libc6 (2.41-12 Debian:13.1/stable [amd64])`.
fn simulated(output: &str) -> Vec<Package> {
    let package = |line: &str| {
        let mut words = line.strip_prefix("Inst ")?.split_whitespace();
        let name = words.next()?.to_owned();
        let version = words.find_map(|word| word.strip_prefix('('))?.to_owned();
        Some(Package { name, version })
    };
    output.lines().filter_map(package).collect()
}

fn configuration(root: &str, architecture: &str) -> String {
    format!(
        r#"Dir::Etc "{root}/etc";
Dir::Etc::sourcelist "{root}/etc/sources.list";
Dir::Etc::sourceparts "{root}/etc/sources.list.d";
Dir::Etc::main "{root}/etc/apt.conf";
Dir::Etc::parts "{root}/etc/apt.conf.d";
Dir::Etc::preferences "{root}/etc/preferences";
Dir::Etc::preferencesparts "{root}/etc/preferences.d";
Dir::State "{root}/state";
Dir::State::lists "{root}/state/lists";
Dir::State::status "{root}/state/status";
Dir::Cache "{root}/cache";
Dir::Cache::archives "{root}/cache/archives";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
APT::Architecture "{architecture}";
APT::Architectures "{architecture}";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
"#
    )
}

/// What the machine's own apt is set up to do.
struct MachineApt {
    architecture: String,
    /// Lines of its configuration that say how the network is reached.
    way_out: String,
    /// Lines of origin, URI and keyring of what it reads.
    sources: String,
}

impl MachineApt {
    fn ask(watcher: &mut Watcher<'_>) -> Result<Self, Error> {
        let mut said = |program: &'static str, arguments: &[&str]| {
            let mut command = child::program(program);
            command.env("LC_ALL", "C.UTF-8").args(arguments);
            child::run(&mut command, program, "apt", watcher, |_, _| {}).map(|ended| ended.output)
        };
        let dump = said("apt-config", &["dump"])?;
        let architecture = value(&dump, "APT::Architecture").unwrap_or_else(|| "amd64".to_owned());
        Ok(MachineApt {
            architecture,
            way_out: way_out(&dump),
            sources: said(
                "apt-get",
                &[
                    "indextargets",
                    "--format",
                    "$(ORIGIN)|$(REPO_URI)|$(SIGNED_BY)",
                    "Created-By: Packages",
                ],
            )?,
        })
    }

    fn archive(&self, distribution: Distribution) -> Result<Archive, Error> {
        let found = configured(&self.sources, distribution);
        let (uri, keyrings, package): (&str, &[&str], _) = match distribution {
            Distribution::Debian => (
                "http://deb.debian.org/debian",
                &[
                    "/usr/share/keyrings/debian-archive-keyring.gpg",
                    "/usr/share/keyrings/debian-archive-keyring.pgp",
                ],
                "debian-archive-keyring",
            ),
            Distribution::Ubuntu => (
                match self.architecture.as_str() {
                    "amd64" | "i386" => "http://archive.ubuntu.com/ubuntu",
                    _ => "http://ports.ubuntu.com/ubuntu-ports",
                },
                &["/usr/share/keyrings/ubuntu-archive-keyring.gpg"],
                // So it is called on Debian; Ubuntu itself has it installed.
                "ubuntu-archive-keyring",
            ),
        };
        let keyring = keyrings.iter().map(PathBuf::from).find(|path| path.is_file());
        let Some(keyring) = keyring else {
            return Err(Error::Packages {
                what: format!("the packages of {} cannot be checked", distribution.word()),
                reason: format!(
                    "its keyring {} is not here: apt-get install {package}",
                    keyrings.join(" or ")
                ),
            });
        };
        Ok(Archive {
            uri: found.unwrap_or_else(|| uri.to_owned()),
            keyring,
        })
    }
}

/// The URI from which the machine's apt reads a distribution, where it does.
fn configured(sources: &str, distribution: Distribution) -> Option<String> {
    let line = sources.lines().find_map(|line| {
        let mut parts = line.split('|');
        let origin = parts.next()?;
        let uri = parts.next()?.trim_end_matches('/');
        // Not the archive of security updates, which has other suites.
        let is_main = uri.rsplit('/').next() == Some(distribution.word());
        (origin.eq_ignore_ascii_case(distribution.word()) && is_main).then_some(uri)
    })?;
    Some(line.to_owned())
}

/// A value of `apt-config dump`.
fn value(dump: &str, key: &str) -> Option<String> {
    let line = dump
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    let value = line.trim_end_matches(';').trim_matches('"');
    (!value.is_empty()).then(|| value.to_owned())
}

/// Proxies and certificates: what the machine's apt needs to reach the network, ours needs too.
fn way_out(dump: &str) -> String {
    let wanted = |line: &&str| {
        let line = line.to_ascii_lowercase();
        [
            "acquire::http::proxy",
            "acquire::https::proxy",
            "acquire::proxy",
            "acquire::https::cainfo",
            "acquire::https::capath",
        ]
        .iter()
        .any(|key| line.starts_with(key))
    };
    dump.lines().filter(wanted).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_says_of_a_simulated_installation_is_read() {
        let output = "NOTE: This is only a simulation!\nReading package lists...\n\
                      Inst libc6 (2.41-12 Debian:13.1/stable [amd64])\n\
                      Inst mariadb-server-core [1:10.11] (1:11.8.6-0+deb13u1 Debian:13.1/stable [amd64])\nConf libc6 (2.41-12 x)\n";
        let package = |name: &str, version: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        assert_eq!(
            simulated(output),
            [
                package("libc6", "2.41-12"),
                package("mariadb-server-core", "1:11.8.6-0+deb13u1")
            ]
        );
    }

    #[test]
    fn progress_is_what_apt_reports() {
        assert_eq!(percent_done("dlstatus:1:12.5000:Retrieving file 1 of 2"), Some(12.5));
        assert_eq!(percent_done("dlstatus:1:NaN:x"), None);
        assert_eq!(percent_done("pmstatus:x:1:y"), None);
    }

    #[test]
    fn the_archive_that_the_machine_reads_is_read_too() {
        let sources = "Debian|http://mirror.example/debian-security/|/x\nDebian|http://mirror.example/debian/|/x\n\
                       Google|https://other.example/apt/|\n";
        assert_eq!(
            configured(sources, Distribution::Debian).as_deref(),
            Some("http://mirror.example/debian")
        );
        assert_eq!(configured(sources, Distribution::Ubuntu), None);
    }

    #[test]
    fn ways_to_the_network_are_taken_over_and_nothing_else() {
        let dump = "APT \"\";\nAPT::Architecture \"arm64\";\nAcquire::http::Proxy \"http://p:1\";\nAcquire::Retries \"9\";\n\
                    Acquire::http::Proxy::host \"DIRECT\";\n";
        assert_eq!(
            way_out(dump),
            "Acquire::http::Proxy \"http://p:1\";\nAcquire::http::Proxy::host \"DIRECT\";\n"
        );
        assert_eq!(value(dump, "APT::Architecture").as_deref(), Some("arm64"));
        assert_eq!(value(dump, "APT"), None);
    }
}
