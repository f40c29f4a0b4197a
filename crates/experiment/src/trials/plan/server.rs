//! The server of a variant: what all have, with what it has otherwise.

use super::super::plan_error::PlanError;
use super::super::plan_file::{ServerText, VariantText, set_over};
use super::PlanSource;
use crate::company::{Company, MOST_NEIGHBOURS};
use crate::options::ServerChoice;
use scaleprof_builds::server_path_in;
use scaleprof_server::{
    CpuSet, Product, Replication, ReplicationMethod, ServerSettings, Settings, Surroundings, parse_size,
};
use std::path::Path;

/// The server's text with what the variant has otherwise.
pub(super) fn merged(server: &ServerText, variant: &VariantText) -> ServerText {
    let mut all = server.clone();
    set_over(&mut all.set, variant.set.clone());
    all.environment.extend(variant.environment.clone());
    all.sql.extend(variant.sql.clone());
    ServerText {
        path: variant.path.clone().or(all.path),
        wrapper: variant.wrapper.clone().or(all.wrapper),
        cpus: variant.cpus.clone().or(all.cpus),
        replication: variant.replication.clone().or(all.replication),
        replicas: variant.replicas.or(all.replicas),
        neighbours: variant.neighbours.or(all.neighbours),
        cpus_others: variant.cpus_others.clone().or(all.cpus_others),
        buffer_pool: variant.buffer_pool.clone().or(all.buffer_pool),
        performance_schema: variant.performance_schema.or(all.performance_schema),
        server_defaults_file: variant.server_defaults_file.clone().or(all.server_defaults_file),
        ..all
    }
}

/// The server as it is started; `key` names a key of the variant in errors.
pub(super) fn server(
    text: &ServerText,
    key: &dyn Fn(&str) -> String,
    source: PlanSource<'_>,
) -> Result<ServerChoice, PlanError> {
    let cpus = |name: &str, list: &Option<String>| -> Result<Option<CpuSet>, PlanError> {
        let list = list.as_ref().map(|list| list.parse::<CpuSet>());
        list.transpose()
            .map_err(|error| PlanError::key(key(name), error.to_string(), "write CPUs such as 0-3,8"))
    };
    let buffer_pool = text.buffer_pool.as_ref().map(|size| {
        parse_size(size).ok_or_else(|| {
            PlanError::key(
                key("buffer_pool"),
                format!("'{size}' is no size"),
                "write bytes, or K, M or G behind the number",
            )
        })
    });
    let settings = ServerSettings {
        buffer_pool: buffer_pool.transpose()?,
        performance_schema: text.performance_schema.unwrap_or(false),
        defaults_file: text.server_defaults_file.as_ref().map(|path| source.folder.join(path)),
        set: text.set.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        ..ServerSettings::default()
    };
    let surroundings = surroundings(text, key)?;
    Settings::new(settings.clone()).map_err(|error| {
        PlanError::key(
            key("set or server_defaults_file"),
            error.to_string(),
            "correct it or leave it out",
        )
    })?;
    Ok(ServerChoice::Private {
        path: text
            .path
            .as_ref()
            .map(|path| server_path_in(source.folder, Path::new(path)))
            .transpose()
            .map_err(|error| PlanError::key(key("path"), error.to_string(), "name another folder or server"))?,
        settings: Box::new(settings),
        surroundings,
        cpus_server: cpus("cpus", &text.cpus)?,
        cpus_client: cpus("cpus_client", &text.cpus_client)?,
        company: company(text, key)?,
        cpus_company: cpus("cpus_others", &text.cpus_others)?,
        work_folder: source.work_folder.map(Path::to_path_buf),
        // What its variants need is kept to its end.
        cache_size: Some(u64::MAX),
        shut_down: false,
    })
}

fn company(text: &ServerText, key: &dyn Fn(&str) -> String) -> Result<Company, PlanError> {
    let method = text.replication.as_deref().filter(|method| *method != "none");
    let neighbours = text.neighbours.filter(|count| *count > 0);
    match (method, neighbours) {
        (Some(_), Some(_)) => Err(PlanError::key(
            key("neighbours"),
            "a server with replicas has no neighbours as well",
            "leave one of replication and neighbours out, or say replication = \"none\" or neighbours = 0",
        )),
        (Some(method), None) => {
            let method = method
                .parse::<ReplicationMethod>()
                .map_err(|problem| PlanError::key(key("replication"), problem, "write one of these, or none"))?;
            Replication::new(method, text.replicas.unwrap_or(1))
                .map(Company::Replicas)
                .map_err(|problem| PlanError::key(key("replicas"), problem, "or leave it out: there is 1 then"))
        }
        (None, Some(count)) if count > MOST_NEIGHBOURS => Err(PlanError::key(
            key("neighbours"),
            format!("{count} are too many"),
            format!("write 1 to {MOST_NEIGHBOURS}"),
        )),
        (None, Some(count)) => Ok(Company::Neighbours(count)),
        (None, None) => Ok(Company::Alone),
    }
}

fn surroundings(text: &ServerText, key: &dyn Fn(&str) -> String) -> Result<Surroundings, PlanError> {
    if let Some(empty) = text
        .wrapper
        .as_ref()
        .filter(|words| words.first().is_none_or(String::is_empty))
    {
        return Err(PlanError::key(
            key("wrapper"),
            format!("{empty:?} names no command"),
            "write its words, such as [\"numactl\", \"--interleave=all\"]",
        ));
    }
    for name in text.environment.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(PlanError::key(
                key("environment"),
                format!("'{name}' cannot be a variable's name"),
                "write NAME = \"value\"",
            ));
        }
    }
    if text.sql.iter().any(|statement| statement.trim().is_empty()) {
        return Err(PlanError::key(
            key("sql"),
            "one of its statements is empty",
            "write a statement in each, such as [\"SET GLOBAL x = 1\"]",
        ));
    }
    Ok(Surroundings {
        wrapper: text.wrapper.clone().unwrap_or_default(),
        environment: text.environment.clone(),
        statements: text.sql.clone(),
    })
}

/// The makers whose servers a variant is for; all where there is none.
pub(super) fn only_for(names: &[String], key: &dyn Fn(&str) -> String) -> Result<Vec<Product>, PlanError> {
    let maker = |name: &String| match name.as_str() {
        "mysql" => Ok(Product::MySql),
        "mariadb" => Ok(Product::MariaDb),
        "percona" => Ok(Product::Percona),
        other => Err(PlanError::key(
            key("products"),
            format!("'{other}' makes no server that is known here"),
            "write mysql, mariadb or percona",
        )),
    };
    names.iter().map(maker).collect()
}
