//! Plans as people write them, right and wrong.

use super::*;
use crate::options::WorkloadChoice;
use scaleprof_server::Surroundings;
use scaleprof_workload::tpcc::HomeWarehouse;

fn plan_of(text: &str) -> Result<Plan, PlanError> {
    let file = PlanFile::parse(text, "e.toml")?;
    let source = PlanSource {
        file: Some("e.toml"),
        folder: Path::new("/plans"),
        work_folder: None,
    };
    Plan::new(&file, source, &mut |path| match path.to_str() {
        Some("/plans/a.sql") => Ok("SELECT 1".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
}

#[test]
fn starts_take_turns_unless_something_keeps_them_from_it() {
    let fitted = |text: &str, available: u64| {
        let mut plan = plan_of(text).unwrap();
        plan.fit_to_memory(available);
        assert_eq!(plan.design.side_by_side, plan.one_by_one.is_none());
        plan.one_by_one.unwrap_or_default()
    };
    let two = "[[variant]]\n[[variant]]\n";
    assert_eq!(fitted(two, 16 << 30), "");
    assert_eq!(fitted(&two.repeat(2), 32 << 30), "");
    assert!(fitted(&two.repeat(3), 64 << 30).contains("more than 4 variants"));
    assert!(fitted(&format!("{two}neighbours = 1\n"), 16 << 30).contains("servers beside it"));
    assert!(fitted(two, 1 << 30).contains("memory"));
    let pools = format!("[server]\nbuffer_pool = \"6G\"\n{two}");
    assert!(fitted(&pools, 16 << 30).contains("their buffer pools would take 12288 MiB"));
    let no = format!("[design]\ninterleave = false\n{two}");
    assert_eq!(fitted(&no, 16 << 30), "as asked");
    let forced = format!("[design]\ninterleave = true\n{two}");
    assert_eq!(fitted(&forced, 16 << 30), "");
    let error = plan_of(&format!("{forced}neighbours = 1\n")).unwrap_err().to_string();
    assert!(error.contains("design.interleave"), "{error}");
}

#[test]
fn servers_with_other_numbers_of_threads_to_stop_or_without_kept_data_do_not_take_turns() {
    let pool = "set = { thread_handling = \"pool-of-threads\" }";
    for (one, other, why) in [
        ("", pool, "differ in thread_handling"),
        (
            "",
            "set = { loose-thread-handling = \"pool-of-threads\" }",
            "differ in thread_handling",
        ),
        (
            "",
            "set = { plugin_load_add = \"thread_pool.so\" }",
            "differ in thread_handling",
        ),
        ("", "idle_connections = 1000", "differ in idle_connections"),
        ("", "set = { thread_handling = \"one-thread-per-connection\" }", ""),
        (pool, pool, ""),
        ("idle_connections = 20", "idle_connections = 20", ""),
    ] {
        let plan = plan_of(&format!("[[variant]]\n{one}\n[[variant]]\n{other}\n")).unwrap();
        let found = turns::hindered_by_kind(&plan.variants).unwrap_or_default();
        assert!(found.contains(why) && found.is_empty() == why.is_empty(), "{found}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pool.cnf");
    std::fs::write(&file, "[mysqld]\nthread-handling = pool-of-threads\n").unwrap();
    let in_file = format!(
        "[[variant]]\n[[variant]]\nserver_defaults_file = \"{}\"\n",
        file.display()
    );
    let found = turns::hindered_by_kind(&plan_of(&in_file).unwrap().variants).unwrap_or_default();
    assert!(found.contains("differ in thread_handling"), "{found}");
    let mut plan = plan_of("[[variant]]\n[[variant]]\n").unwrap();
    if let ServerChoice::Private { cache_size, .. } = &mut plan.variants[1].server {
        *cache_size = None;
    }
    plan.fit_to_memory(64 << 30);
    let why = plan.one_by_one.unwrap_or_default();
    assert!(why.contains("variant 2 keeps no prepared data"), "{why}");
}

#[test]
fn connections_of_all_servers_at_once_need_memory_and_open_files() {
    let plan = plan_of("[ladder]\nconnections = \"1,8000\"\n[[variant]]\n[[variant]]\n").unwrap();
    let ladder = &plan.design.connections;
    let of_memory = |available: u64| turns::hindered_by_memory(&plan.variants, ladder, available);
    assert_eq!(of_memory(16 << 30), None);
    let why = of_memory(8 << 30).unwrap_or_default();
    assert!(
        why.starts_with("the servers with all their connections would take"),
        "{why}"
    );
    let of_files = |most: u32| turns::hindered_by_files(&plan.variants, ladder, |all| all <= most);
    assert_eq!(of_files(16_000), None);
    let why = of_files(15_999).unwrap_or_default();
    assert!(why.starts_with("16000 connections at once"), "{why}");
    let set = "[server]\nset = { innodb_buffer_pool_size = \"6G\" }\n[[variant]]\n[[variant]]\n";
    let plan = plan_of(set).unwrap();
    let why = turns::hindered_by_memory(&plan.variants, &[1], 16 << 30).unwrap_or_default();
    assert!(why.starts_with("their buffer pools would take 12288 MiB"), "{why}");
    // A pair of the larger one with itself is larger than both.
    let plan = plan_of("[[variant]]\nbuffer_pool = \"1G\"\n[[variant]]\nbuffer_pool = \"6G\"\n").unwrap();
    let why = turns::hindered_by_memory(&plan.variants, &[1], 16 << 30).unwrap_or_default();
    assert!(why.starts_with("their buffer pools would take 12288 MiB"), "{why}");
}

#[test]
fn turns_are_as_long_as_the_most_connections_ask_for() {
    let seconds = |text: &str| {
        plan_of(&format!("{text}[[variant]]\n[[variant]]\n"))
            .unwrap()
            .turn_seconds()
    };
    assert_eq!(seconds(""), Some(0.25));
    let many = "[ladder]\nconnections = \"16,2000\"\n[load]\nidle_connections = 48\n";
    assert_eq!(seconds(many), Some(1.0));
    assert_eq!(seconds("[design]\ninterleave = false\n"), None);
}

const TWO: &str = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";

#[test]
fn servers_beside_one_are_checked_before_any_is_started() {
    let company = |text: &str| match plan_of(text).unwrap().variants[1].server.clone() {
        ServerChoice::Private { company, settings, .. } => (company, settings),
        ServerChoice::Attached(_) => unreachable!("plans have servers of our own"),
    };
    let group = company("[[variant]]\n[[variant]]\nreplication = \"group\"\nreplicas = 2\n").0;
    assert_eq!(group.words().as_deref(), Some("group, 2 replicas"));
    assert_eq!((group.servers(), group.loaded_servers()), (3, 1));
    let pair = company("[server]\nneighbours = 1\n[[variant]]\nneighbours = 0\n[[variant]]\n").0;
    assert_eq!((pair.servers(), pair.loaded_servers()), (2, 2));
    for (text, said) in [
        ("replication = \"raft\"", "variant 2, replication: 'raft'"),
        (
            "replication = \"group\"\nreplicas = 9",
            "variant 2, replicas: 9 replicas",
        ),
        ("replication = \"group\"\nneighbours = 1", "variant 2, neighbours: "),
        ("neighbours = 16", "variant 2, neighbours: 16"),
        ("replicas = 2", "variant 2, replicas: the variant has only one server"),
        (
            "replication = \"group\"\noptions = { secondary = true }",
            "clusters need a primary key",
        ),
    ] {
        let error = plan_of(&format!("[[variant]]\n[[variant]]\n{text}\n"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn servers_with_others_beside_them_have_no_smaller_pool_than_those_alone() {
    let mut plan = plan_of("[[variant]]\n[[variant]]\nneighbours = 1\n").unwrap();
    plan.fit_to_memory(4 << 30);
    let pools = plan.variants.iter().map(|variant| match &variant.server {
        ServerChoice::Private { settings, .. } => settings.buffer_pool,
        ServerChoice::Attached(_) => None,
    });
    let pools: Vec<Option<u64>> = pools.collect();
    assert!(
        pools[0].is_some_and(|pool| pool <= (1 << 30) + (128 << 20)) && pools[0] == pools[1],
        "{pools:?}"
    );
}

#[test]
fn a_variant_has_what_it_says_and_else_what_all_have() {
    let plan = plan_of(
        "[load]\nworkload = \"oltp_update_index\"\nisolation = \"read-committed\"\n[server]\npath = \"mysql\"\nset = \
         { x = 1, y = 2 }\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\npath = \"/opt/other\"\nset = { y = \
         3 }\nisolation = \"serializable\"\nwrapper = [\"numactl\", \"-i\", \"all\"]\nenvironment = { LD_PRELOAD = \
         \"/x/jemalloc.so\" }\ncpus = \"0\"\n",
    );
    let plan = plan.unwrap();
    let of = |at: usize| match &plan.variants[at].server {
        ServerChoice::Private {
            path,
            settings,
            surroundings,
            cpus_server,
            ..
        } => (
            path.clone(),
            settings.set.clone(),
            surroundings.clone(),
            cpus_server.is_some(),
        ),
        ServerChoice::Attached(_) => unreachable!("plans have servers of our own"),
    };
    let (path, set, around, bound) = of(0);
    assert_eq!((path, bound), (Some(PathBuf::from("/plans/mysql")), false));
    assert_eq!(
        (set, around),
        (vec!["x=1".into(), "y=2".into()], Surroundings::default())
    );
    let (path, set, around, bound) = of(1);
    assert_eq!((path, bound), (Some(PathBuf::from("/opt/other")), true));
    assert_eq!((set, around.wrapper.len()), (vec!["x=1".to_owned(), "y=3".into()], 3));
    let levels = [0, 1].map(|at: usize| plan.variants[at].load.isolation.clone().unwrap());
    assert_eq!(levels, ["READ COMMITTED", "SERIALIZABLE"]);
    assert_eq!(
        plan.variants[1].differs_by,
        [
            "server other",
            "y=3",
            "environment LD_PRELOAD",
            "wrapper numactl",
            "CPUs 0",
            "isolation serializable"
        ]
    );
    assert_eq!(plan.name, "e");
}

#[test]
fn statements_are_read_from_beside_the_plan() {
    let plan = plan_of(&format!("[load]\nworkload = \"a.sql\"\n{TWO}")).unwrap();
    assert!(matches!(&plan.variants[0].load.workload, WorkloadChoice::Script { text, .. } if text == "SELECT 1"));
    let error = plan_of(&format!("[load]\nworkload = \"b.sql\"\n{TWO}"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("e.toml: load.workload: cannot read b.sql"), "{error}");
}

#[test]
fn errors_name_file_key_and_remedy() {
    let cases = [
        (
            "name = \"\"\n[[variant]]\n[[variant]]\n",
            "e.toml: name: '' cannot be shown",
        ),
        ("", "e.toml: variant: there are 0 variants"),
        (
            "[[variant]]\n[[variant]]\nname = \"variant 1\"\n",
            "e.toml: variant 2, name: two variants are called",
        ),
        (
            "[[variant]]\n[[variant]]\nset = { datadir = \"/x\" }\n",
            "e.toml: variant 2, set or server_defaults_file: --set datadir",
        ),
        (
            "[load]\nworkload = \"tpc\"\n[[variant]]\n[[variant]]\n",
            "e.toml: load.workload: ",
        ),
        (
            "[load]\nisolation = \"snapshot\"\n[[variant]]\n[[variant]]\n",
            "e.toml: load.isolation: 'snapshot'",
        ),
        (
            "[load]\noptions = { point_select = 3 }\n[[variant]]\n[[variant]]\n",
            "e.toml: load.options.point_select: ",
        ),
        ("[load]\ntables = 0\n[[variant]]\n[[variant]]\n", "e.toml: load: "),
        (
            "[load]\nrate = -1.0\n[[variant]]\n[[variant]]\n",
            "e.toml: load.rate: -1 is not possible",
        ),
        (
            "[[variant]]\nwrapper = []\n[[variant]]\n",
            "e.toml: variant 1, wrapper: [] names no command",
        ),
        ("[[variant]]\ncpus = \"x\"\n[[variant]]\n", "e.toml: variant 1, cpus: "),
        (
            "[[variant]]\nbuffer_pool = \"4X\"\n[[variant]]\n",
            "e.toml: variant 1, buffer_pool: '4X'",
        ),
        ("[[variant]]\nname = \" a\"\n[[variant]]\n", "e.toml: variant 1, name: "),
        (
            "[design]\npairs = 3\n[[variant]]\n[[variant]]\n",
            "e.toml: design.pairs: 3 is odd",
        ),
    ];
    for (text, expected) in cases {
        let error = plan_of(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_variant_may_have_a_load_of_its_own() {
    let plan = plan_of(
        "[load]\ntables = 3\nwarehouses = 2\nseed = 7\n\
         [[variant]]\nname = \"sysbench\"\n\
         [[variant]]\nname = \"TPC-C\"\nworkload = \"tpcc\"\nmix = \"1,1,0,0,0\"\nhome_warehouse = \"random\"\nthink_times = 0.5\n\
         [[variant]]\nname = \"more\"\ntables = 1\nrows = 9\noptions = { point_selects = 3 }\nread_tables = false\n",
    )
    .unwrap();
    let load = |at: usize| &plan.variants[at].load;
    let WorkloadChoice::Tpcc(tpcc) = &load(1).workload else {
        panic!("{:?}", load(1))
    };
    assert_eq!(
        (tpcc.warehouses, tpcc.home, tpcc.pauses, tpcc.data_seed),
        (2, HomeWarehouse::Random, Some(0.5), 7)
    );
    let tables = |at: usize| {
        (
            load(at).oltp.tables,
            load(at).oltp.table_size,
            load(at).oltp.point_selects,
        )
    };
    assert_eq!((tables(0), tables(2)), ((3, 50_000, 10), (1, 9, 3)));
    assert_eq!((load(0).reads_tables_first, load(2).reads_tables_first), (true, false));
    // Other tables are no other work; other statements are.
    assert_eq!((plan.is_same_work(0, 1), plan.is_same_work(0, 2)), (false, false));
    let plan = plan_of("[[variant]]\ntables = 1\n[[variant]]\ndistribution = \"pareto\"\n").unwrap();
    assert!(plan.is_same_work(0, 1));
}

#[test]
fn keys_of_another_workload_are_refused_where_they_are_of_no_use() {
    let cases = [
        (
            "[load]\nmix = \"1,1,1,1,1\"\n[[variant]]\n[[variant]]\n",
            "e.toml: load.mix: it goes with another kind",
        ),
        (
            "[load]\nworkload = \"tpcc\"\ntables = 3\n[[variant]]\n[[variant]]\n",
            "e.toml: load.tables: it does not go with tpcc",
        ),
        (
            "[[variant]]\nworkload = \"tpcc\"\ndistribution = \"pareto\"\n[[variant]]\n",
            "e.toml: variant 1, distribution: it does not go with tpcc",
        ),
        (
            "[[variant]]\nworkload = \"tpcc\"\nwarehouses = 0\n[[variant]]\n",
            "e.toml: load: --warehouses 0",
        ),
        (
            "[[variant]]\nworkload = \"tpcc\"\nthink_times = 1.0\nrate = 5.0\n[[variant]]\n",
            "e.toml: load.rate: it and think_times contradict",
        ),
        (
            "[[variant]]\nproducts = [\"oracle\"]\n[[variant]]\n",
            "e.toml: variant 1, products: 'oracle'",
        ),
        ("[[variant]]\nsql = [\" \"]\n[[variant]]\n", "e.toml: variant 1, sql: "),
        (
            "[requires]\ncomparison = \"two builds\"\n",
            "e.toml: requires.comparison: what shall be compared is not said yet\nfix: give two builds",
        ),
    ];
    for (text, expected) in cases {
        let error = plan_of(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_question_of_several_memory_nodes_is_needless_on_one() {
    let plan = plan_of(&format!("[requires]\nmemory_nodes = 4096\n{TWO}")).unwrap();
    let here = Topology::of_this_machine().unwrap();
    let why = plan.needless_here(&here).unwrap();
    assert!(
        why.contains("4096 or more") && why.contains("numactl --hardware"),
        "{why}"
    );
    assert_eq!(plan_of(TWO).unwrap().needless_here(&here), None);
}

#[test]
fn statements_after_the_start_are_counted_and_not_shown() {
    let plan = plan_of(
        "[server]\nsql = [\"SET GLOBAL a = 1\"]\n[[variant]]\nsql = [\"UPDATE anna.salary SET x = 1\"]\n[[variant]]\n",
    )
    .unwrap();
    assert_eq!(plan.variants[0].differs_by, ["a statement after its start"]);
    let ServerChoice::Private { surroundings, .. } = &plan.variants[0].server else {
        panic!("plans have servers of our own")
    };
    assert_eq!(
        surroundings.statements,
        ["SET GLOBAL a = 1", "UPDATE anna.salary SET x = 1"]
    );
}

#[test]
fn what_may_be_a_name_is_not_shown_to_others() {
    let plan = plan_of("[[variant]]\nset = { init_connect = \"/home/anna\" }\n[[variant]]\n").unwrap();
    assert_eq!(plan.variants[0].differs_by, ["init_connect=..."]);
}
