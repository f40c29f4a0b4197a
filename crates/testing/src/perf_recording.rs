//! Writes recordings as `perf record -o -` does (tools/perf/Documentation/perf.data-file-format.txt, "pipe-mode data").

/// `sample_type`.
pub mod field {
    /// PERF_SAMPLE_TID.
    pub const TID: u64 = 1 << 1;
    /// PERF_SAMPLE_TIME.
    pub const TIME: u64 = 1 << 2;
    /// PERF_SAMPLE_CALLCHAIN.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// PERF_SAMPLE_PERIOD.
    pub const PERIOD: u64 = 1 << 8;
    /// PERF_SAMPLE_RAW.
    pub const RAW: u64 = 1 << 10;
    /// PERF_SAMPLE_BRANCH_STACK.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// PERF_SAMPLE_IDENTIFIER.
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// What stands in a call chain before addresses of the kernel.
pub const KERNEL_MARK: u64 = -128_i64 as u64;

/// An event; its samples carry its place in the list, from 1.
#[derive(Debug, Clone)]
pub struct Event {
    /// `type` of `perf_event_attr`.
    pub kind: u32,
    /// `config` of `perf_event_attr`.
    pub config: u64,
    /// What each sample carries, of [`field`].
    pub sample_type: u64,
    /// `branch_sample_type` of `perf_event_attr`.
    pub branches: u64,
    /// Samples a second; none for a period that each sample tells.
    pub hertz: Option<u64>,
}

impl Event {
    /// `cpu-clock`.
    pub fn clock(sample_type: u64) -> Event {
        Event {
            kind: 1,
            config: 0,
            sample_type,
            branches: 0,
            hertz: None,
        }
    }
}

/// A recording so far.
pub struct Written {
    /// The recording, as it would be written to a pipe.
    pub bytes: Vec<u8>,
    time: u64,
}

impl Written {
    /// A recording of these events, without any record.
    pub fn new(events: &[Event]) -> Written {
        let mut written = Written {
            bytes: [b"PERFILE2", &16_u64.to_le_bytes()[..]].concat(),
            time: 0,
        };
        for (id, event) in (1_u64..).zip(events) {
            const LENGTH: u64 = 112;
            const IN_HERTZ: u64 = 1 << 10;
            const IDS_EVERYWHERE: u64 = 1 << 18;
            let mut words = vec![
                u64::from(event.kind) | LENGTH << 32,
                event.config,
                event.hertz.unwrap_or(0),
            ];
            words.extend([event.sample_type, 0]);
            words.push(IDS_EVERYWHERE | event.hertz.map_or(0, |_| IN_HERTZ));
            words.extend([0, 0, 0, event.branches, 0, 0, 0, 0]);
            words.push(id);
            written.record(64, 0, &words);
        }
        written
    }

    /// A record of whole numbers.
    pub fn record(&mut self, kind: u32, misc: u16, words: &[u64]) {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.record_of_bytes(kind, misc, &body);
    }

    fn record_of_bytes(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(misc.to_le_bytes());
        self.bytes.extend((body.len() as u16 + 8).to_le_bytes());
        self.bytes.extend(body);
    }

    /// A sample: its numbers up to the period, and what follows them. Records behind it have its time.
    pub fn sample(&mut self, words: &[u64; 4], rest: &[u8]) {
        self.time = words[2];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(rest);
        const OF_KERNEL: u16 = 1;
        const OF_USER: u16 = 2;
        let first = rest
            .get(8..16)
            .and_then(|word| word.try_into().ok())
            .map(u64::from_le_bytes);
        let misc = match first {
            Some(KERNEL_MARK) => OF_KERNEL,
            _ => OF_USER,
        };
        self.record_of_bytes(9, misc, &body);
    }

    /// A file is mapped as code, from its beginning.
    pub fn map(&mut self, process: u32, start: u64, length: u64, path: &str) {
        let mut body = Vec::new();
        body.extend(process.to_le_bytes());
        body.extend(process.to_le_bytes());
        for word in [start, length, 0, 0, 0, 0] {
            body.extend(word.to_le_bytes());
        }
        const EXECUTABLE: u32 = 4;
        body.extend(EXECUTABLE.to_le_bytes());
        body.extend(0_u32.to_le_bytes());
        body.extend(path.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        // Thread, time and number, as samples have them.
        for word in [u64::from(process), self.time, 1] {
            body.extend(word.to_le_bytes());
        }
        self.record_of_bytes(10, 0, &body);
    }

    /// The event of that number has a name.
    pub fn name(&mut self, id: u64, name: &str) {
        let mut body: Vec<u8> = [2, id].iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(name.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        self.record_of_bytes(78, 0, &body);
    }

    /// A feature of the header that is a string.
    pub fn feature_string(&mut self, feature: u64, text: &str) {
        let mut body = feature.to_le_bytes().to_vec();
        body.extend((text.len() as u32 + 1).to_le_bytes());
        body.extend(text.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        self.record_of_bytes(80, 0, &body);
    }
}

/// A call chain: how many, and the addresses.
pub fn chain(addresses: &[u64]) -> Vec<u8> {
    let count = addresses.len() as u64;
    [count]
        .iter()
        .chain(addresses)
        .flat_map(|word| word.to_le_bytes())
        .collect()
}
