//! Shell completions and manual pages, made from the options themselves.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "scaleprof", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man_pages(folder: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(Arguments::command(), folder)
        .with_context(|| format!("cannot write the manual pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
