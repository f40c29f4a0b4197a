//! Which waits are for the same lock.

use crate::{Content, ContentHash, Dictionary, FrameId, Lock, LockId, LockWait, StackId, Variable};
use std::collections::HashMap;
use std::sync::Arc;

/// What makes a lock the same lock in another process: an address does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LockIdentity {
    /// The variable that holds it.
    Variable(Variable),
    /// On the heap or on a stack: the functions that wait, outermost first.
    CallPath(Vec<PathPart>),
}

/// One function of a call path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PathPart {
    pub(crate) module: Arc<str>,
    pub(crate) function: Result<Arc<str>, FrameId>,
}

impl Content for LockIdentity {
    fn hash(&self, hash: &mut ContentHash) {
        match self {
            LockIdentity::Variable(Variable { module, name }) => {
                hash.string(module);
                hash.string(name);
            }
            LockIdentity::CallPath(parts) => {
                for PathPart { module, function } in parts {
                    hash.string(module);
                    match function {
                        Ok(function) => hash.string(function),
                        Err(frame) => hash.integer(frame.0),
                    }
                }
            }
        }
    }
}

/// Sums over the waits for each lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locks {
    identities: Dictionary<LockIdentity>,
    /// By lock and operation, in the order in which they came.
    sums: Vec<(LockId, Operation, Sum)>,
    places: HashMap<(LockId, Operation), usize>,
}

/// What was waited for there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    /// A futex, with the number of its operation.
    Futex(u32),
    /// A lock of the kernel, with its kind.
    Kernel(u32),
}

#[derive(Debug, Clone, Default)]
struct Sum {
    waits: u64,
    wait_ns: f64,
    owners: HashMap<StackId, u64>,
}

impl Locks {
    /// Counts a wait.
    pub(crate) fn add(
        &mut self,
        identity: LockIdentity,
        wait: &LockWait,
        weight_ns: f64,
        owner: Option<StackId>,
    ) -> LockId {
        let id = LockId(self.identities.intern(identity));
        let sums = &mut self.sums;
        let operation = match wait.kernel {
            true => Operation::Kernel(wait.operation),
            false => Operation::Futex(wait.operation),
        };
        let place = *self.places.entry((id, operation)).or_insert_with(|| {
            sums.push((id, operation, Sum::default()));
            sums.len() - 1
        });
        let sum = &mut self.sums[place].2;
        sum.wait_ns += weight_ns;
        // A long wait is told in parts, and is one all the same.
        if wait.goes_on {
            return id;
        }
        sum.waits += 1;
        if let Some(owner) = owner {
            *sum.owners.entry(owner).or_default() += 1;
        }
        id
    }

    /// The locks so far; the sums begin anew, the numbers stay.
    pub(crate) fn take(&mut self) -> Vec<Lock> {
        self.places.clear();
        std::mem::take(&mut self.sums)
            .into_iter()
            .map(|(id, operation, sum)| {
                let most = sum.owners.iter().max_by_key(|(stack, count)| (**count, **stack));
                Lock {
                    id,
                    variable: match self.identities.get(id.0) {
                        Some(LockIdentity::Variable(variable)) => Some(variable.clone()),
                        _ => None,
                    },
                    operation: operation.name(),
                    waits: sum.waits,
                    wait_ns: sum.wait_ns,
                    holder_stack: most.map(|(stack, _)| *stack),
                    holder_samples: most.map_or(0, |(_, count)| *count),
                }
            })
            .collect()
    }
}

impl Operation {
    /// The name of a futex operation (include/uapi/linux/futex.h), in lower case and without its prefix; for a lock of the
    /// kernel, what it is. The system calls of futex2 are not among the former: a collector gives futex_waitv(2) as
    /// [`FUTEX2_WAITV`] and futex_wait(2) as FUTEX_WAIT_BITSET, which means the same.
    fn name(self) -> String {
        match self {
            Operation::Futex(0) => "wait",
            Operation::Futex(6) => "lock_pi",
            Operation::Futex(9) => "wait_bitset",
            Operation::Futex(11) => "wait_requeue_pi",
            Operation::Futex(13) => "lock_pi2",
            Operation::Futex(FUTEX2_WAITV) => "waitv",
            Operation::Futex(other) => return format!("operation {other}"),
            Operation::Kernel(kind) => kernel_lock(kind),
        }
        .to_owned()
    }
}

/// What kind of lock the flags LCB_F_... tell of (include/trace/events/lock.h). A semaphore that is spun for at first has the
/// same ones as when it is slept for.
fn kernel_lock(kind: u32) -> &'static str {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const RT: u32 = 8;
    const PERCPU: u32 = 16;
    const MUTEX: u32 = 32;
    match kind {
        kind if kind & MUTEX != 0 => "kernel mutex",
        kind if kind & RT != 0 => "kernel rt_mutex",
        kind if kind & PERCPU != 0 => "kernel percpu_rw_semaphore",
        kind if kind & (SPIN | READ) == SPIN | READ => "kernel rwlock, read",
        kind if kind & (SPIN | WRITE) == SPIN | WRITE => "kernel rwlock, write",
        kind if kind & READ != 0 => "kernel rw_semaphore, read",
        kind if kind & WRITE != 0 => "kernel rw_semaphore, write",
        kind if kind & SPIN != 0 => "kernel spinlock",
        _ => "kernel semaphore",
    }
}

/// The number that stands for futex_waitv(2): that of the system call.
pub const FUTEX2_WAITV: u32 = 449;
