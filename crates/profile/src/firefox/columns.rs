//! The tables of a processed profile: a list for each column.

use scaleprof_vocabulary::ThreadState;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Processed<'a> {
    pub meta: Meta<'a>,
    pub libs: Vec<Library<'a>>,
    pub shared: Shared,
    pub threads: Vec<Thread<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    pub interval: f64,
    pub start_time: f64,
    pub process_type: u32,
    pub product: &'a str,
    pub imported_from: &'a str,
    pub stackwalk: u32,
    pub version: u32,
    pub preprocessed_profile_version: u32,
    pub symbolicated: bool,
    pub uses_only_one_stack_type: bool,
    pub source_code_is_not_on_searchfox: bool,
    pub categories: [Category; ThreadState::ALL.len()],
    pub marker_schema: [(); 0],
    pub sample_units: SampleUnits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleUnits {
    pub time: &'static str,
    pub event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    pub thread_cpu_delta: &'static str,
}

#[derive(Serialize)]
pub(super) struct Category {
    name: &'static str,
    color: &'static str,
    subcategories: [&'static str; 1],
}

impl Category {
    pub(super) const fn new(name: &'static str, color: &'static str) -> Category {
        Category {
            name,
            color,
            subcategories: ["Other"],
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Library<'a> {
    name: &'a str,
    path: &'a str,
    debug_name: &'a str,
    debug_path: &'a str,
    breakpad_id: &'static str,
    code_id: Option<&'a str>,
    arch: Option<&'a str>,
}

impl<'a> Library<'a> {
    /// Of a module. All is named already, so nothing is looked up by the identifiers.
    pub(super) fn of(name: &'a str, build_id: Option<&'a str>) -> Library<'a> {
        Library {
            name,
            path: name,
            debug_name: name,
            debug_path: name,
            breakpad_id: "",
            code_id: build_id,
            arch: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    pub string_array: Vec<String>,
    pub stack_table: Stacks,
    pub frame_table: FrameTable,
    pub func_table: Functions,
    pub resource_table: Resources,
    pub native_symbols: NativeSymbols,
    pub sources: Sources,
}

#[derive(Serialize, Default)]
pub(super) struct Stacks {
    pub frame: Vec<usize>,
    pub prefix: Vec<Option<usize>>,
    pub length: usize,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    pub address: Vec<i64>,
    pub inline_depth: Vec<u8>,
    pub category: Vec<Option<usize>>,
    pub subcategory: Vec<Option<usize>>,
    pub func: Vec<usize>,
    pub native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    pub inner_window_id: Vec<Option<u32>>,
    pub line: Vec<Option<i32>>,
    pub column: Vec<Option<i32>>,
    pub length: usize,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Functions {
    pub name: Vec<usize>,
    #[serde(rename = "isJS")]
    pub is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub relevant_for_js: Vec<bool>,
    pub resource: Vec<usize>,
    pub source: Vec<Option<usize>>,
    pub line_number: Vec<Option<u32>>,
    pub column_number: Vec<Option<u32>>,
    pub length: usize,
}

#[derive(Serialize, Default)]
pub(super) struct Resources {
    pub lib: Vec<usize>,
    pub name: Vec<usize>,
    pub host: Vec<Option<usize>>,
    pub r#type: Vec<u32>,
    pub length: usize,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    pub lib_index: [usize; 0],
    pub address: [i64; 0],
    pub name: [usize; 0],
    pub function_size: [u64; 0],
    pub length: usize,
}

#[derive(Serialize, Default)]
pub(super) struct Sources {
    pub uuid: Vec<Option<String>>,
    pub filename: Vec<usize>,
    pub length: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread<'a> {
    pub process_type: &'static str,
    pub process_startup_time: f64,
    pub process_shutdown_time: Option<f64>,
    pub register_time: f64,
    pub unregister_time: Option<f64>,
    pub paused_ranges: [(); 0],
    pub name: &'a str,
    pub is_main_thread: bool,
    pub process_name: &'a str,
    pub pid: &'static str,
    pub tid: i64,
    pub samples: Samples,
    pub markers: Markers,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Samples {
    pub stack: Vec<Option<usize>>,
    pub time: Vec<f64>,
    pub weight: Vec<f64>,
    pub weight_type: &'static str,
    pub length: usize,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Markers {
    pub data: [(); 0],
    pub name: [usize; 0],
    pub start_time: [f64; 0],
    pub end_time: [f64; 0],
    pub phase: [u32; 0],
    pub category: [usize; 0],
    pub length: usize,
}
