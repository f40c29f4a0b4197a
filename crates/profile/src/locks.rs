//! Which waits are for the same lock.

use crate::{Content, ContentHash, Dictionary, FrameId, Lock, LockId, LockWait, StackId, Variable};
use std::collections::HashMap;

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
    pub(crate) module: String,
    pub(crate) function: Result<String, FrameId>,
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
    sums: Vec<(LockId, u32, Sum)>,
    places: HashMap<(LockId, u32), usize>,
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
        let place = *self.places.entry((id, wait.operation)).or_insert_with(|| {
            sums.push((id, wait.operation, Sum::default()));
            sums.len() - 1
        });
        let sum = &mut self.sums[place].2;
        sum.waits += 1;
        sum.wait_ns += weight_ns;
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
                    operation: operation_name(operation),
                    waits: sum.waits,
                    wait_ns: sum.wait_ns,
                    owner_stack: most.map(|(stack, _)| *stack),
                    owner_samples: most.map_or(0, |(_, count)| *count),
                }
            })
            .collect()
    }
}

/// The name of a futex operation (include/uapi/linux/futex.h), in lower case and without its prefix. The system calls of
/// futex2 are not among them: a collector gives futex_waitv(2) as [`FUTEX2_WAITV`] and futex_wait(2) as FUTEX_WAIT_BITSET,
/// which means the same.
fn operation_name(operation: u32) -> String {
    match operation {
        0 => "wait",
        6 => "lock_pi",
        9 => "wait_bitset",
        11 => "wait_requeue_pi",
        13 => "lock_pi2",
        FUTEX2_WAITV => "waitv",
        other => return format!("operation {other}"),
    }
    .to_owned()
}

/// The number that stands for futex_waitv(2): that of the system call.
pub const FUTEX2_WAITV: u32 = 449;
