//! A server of the test's own, and a load on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use scaleprof_server::{Sandbox, ServerSettings, Settings};
use scaleprof_wire::Credentials;
use scaleprof_workload::{
    LoadClock, LoadError, LoadObserver, LoadOutcome, LoadPlan, LoadScheduling, LoopKind, OltpOptions, OltpWorkload,
    OltpWorkloadKind, Program, SecondRecord, Tally, TransportChoice, drive, schema,
};

use testing::servers::{Server, TestFolder, start_empty, work_folder};

/// Connections of the load.
pub const CONNECTIONS: u32 = 16;

/// A running server with tables in it, and the folder that it lives in, dropped in this order.
pub struct Stage {
    sandbox: Sandbox,
    options: OltpOptions,
    _folder: TestFolder,
}

impl Stage {
    /// Starts a server and fills its tables.
    pub fn start(server: &Server) -> Self {
        let folder = work_folder();
        let settings = Settings::new(ServerSettings {
            connections: 64,
            buffer_pool: Some(64 << 20),
            redo_log: 96 << 20,
            ..ServerSettings::default()
        })
        .expect("settings");
        let sandbox = start_empty(&server.installation, &settings, &folder)
            .unwrap_or_else(|error| panic!("{}: {error}", server.name));
        let options = OltpOptions {
            tables: 2,
            table_size: 5000,
            ..OltpOptions::default()
        };
        schema::create(&mut sandbox.connect().expect("a connection"), Some(&options), "test").expect("tables");
        let plan = schema::FillPlan {
            endpoint: sandbox.endpoint().clone(),
            credentials: sandbox.credentials(),
            options: options.clone(),
            kind: OltpWorkloadKind::ReadWrite,
            seed: 1,
            threads: 2,
            skip_binary_log: true,
        };
        schema::fill(&plan, &AtomicBool::new(false), &mut |_| {}).expect("rows");
        Self {
            sandbox,
            options,
            _folder: folder,
        }
    }

    pub fn pid(&self) -> u32 {
        self.sandbox.pid()
    }

    pub fn is_alive(&mut self) -> bool {
        self.sandbox.watch().is_none()
    }

    /// Begins the load; all its connections are open and busy when this returns.
    pub fn load(&self) -> Load {
        let workload = OltpWorkload::new(OltpWorkloadKind::ReadWrite, self.options.clone()).expect("a workload");
        let plan = LoadPlan {
            endpoint: self.sandbox.endpoint().clone(),
            credentials: Credentials::user("root").in_database(schema::SCHEMA),
            program: Arc::new(Program::Oltp(workload)),
            connections: CONNECTIONS,
            idle_connections: 0,
            // It is stopped when enough was seen.
            seconds: 60,
            loop_kind: LoopKind::Closed,
            threads: 1,
            cpus: vec![],
            scheduling: LoadScheduling::Usual,
            seed: 1,
            transport: TransportChoice::Auto.choose().expect("a way").transport,
            session_statements: vec![],
            clock: LoadClock::default(),
            tally: Tally::default(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || drive(&plan, &stop, &mut Begins(tell))
        });
        told.recv_timeout(Duration::from_secs(30)).expect("the load begins");
        Load { stop, thread }
    }
}

/// A load under way.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<LoadOutcome, LoadError>>,
}

impl Load {
    /// Stops it. Nothing may have gone wrong with it before.
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join().expect("it does not panic") {
            Ok(_) | Err(LoadError::Stopped) => {}
            Err(error) => panic!("the load failed: {error}"),
        }
    }
}

/// Tells when the first transactions are sent.
struct Begins(Sender<()>);

impl LoadObserver for Begins {
    fn connected(&mut self, _: u32, _: u32) {}
    fn begins(&mut self) {
        let _ = self.0.send(());
    }
    fn second_ended(&mut self, _: u32) {}
    fn record(&mut self, _: SecondRecord) {}
}
