//! What the instructions of one binary cost a transaction, at two rungs of a bundle.

use super::judged::{PlaceCost, TwoRungs};
use crate::base_rung::cheapest;
use crate::instruction_costs::{InstructionCosts, InstructionId, Spent};
use crate::rung_instructions::RungInstructions;
use scaleprof_bundle::Estimate;
use std::collections::{BTreeSet, HashMap};
use thiserror::Error;

/// Why a bundle says nothing of a binary's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CostsNotKnown {
    /// Fewer than two rungs.
    #[error(
        "the bundle has samples of {0} rungs, and two are required to see growth\nfix: run with several --connections"
    )]
    TooFewRungs(usize),
    /// Its samples are of other files.
    #[error("the bundle has no samples of {module}, but of {others}\nfix: name the binary that was run")]
    OtherFiles {
        /// The file that was asked for.
        module: String,
        /// The files with most samples.
        others: String,
    },
    /// The file was built again.
    #[error(
        "the bundle is of another build of {module} (build-id {theirs}, the file has {ours}): its addresses mean nothing here"
    )]
    OtherBuild {
        /// The file.
        module: String,
        /// The bundle's.
        theirs: String,
        /// The file's own.
        ours: String,
    },
}

/// The costs of one binary's instructions at the rung at which a transaction was cheapest and at the last one.
#[derive(Debug)]
pub struct MeasuredCosts<'a> {
    base: AtAddresses<'a>,
    last: AtAddresses<'a>,
}

/// The costs of one binary's instructions at one rung, by their addresses.
#[derive(Debug)]
pub(super) struct AtAddresses<'a> {
    connections: u32,
    costs: &'a InstructionCosts,
    /// By address in the file, with the samples of threads that ran them.
    instructions: HashMap<u64, (InstructionId, u64)>,
}

impl<'a> MeasuredCosts<'a> {
    /// `rungs` by rising connections; those that the client limited are left out. `module` is the file name of the binary.
    ///
    /// # Errors
    /// [`CostsNotKnown`].
    pub fn of(
        rungs: &'a [RungInstructions],
        module: &str,
        build_id: Option<&str>,
    ) -> Result<MeasuredCosts<'a>, CostsNotKnown> {
        let sampled =
            |rung: &&RungInstructions| !rung.client_limited && rung.connections.is_some() && rung.costs.all().is_some();
        let usable: Vec<&RungInstructions> = rungs.iter().filter(sampled).collect();
        let pair = usable.split_last().and_then(|(last, before)| {
            let cheapest = cheapest(before, |rung| rung.costs.all())?;
            Some((*cheapest, *last))
        });
        let (base, last) = pair.ok_or(CostsNotKnown::TooFewRungs(usable.len()))?;
        let mut others: HashMap<&str, u64> = HashMap::new();
        for (_, sampled) in last.costs.instructions().chain(base.costs.instructions()) {
            *others.entry(&sampled.at.module).or_default() += sampled.samples;
            if let Some(theirs) = &sampled.at.build_id
                && sampled.at.module == module
                && build_id != Some(theirs)
            {
                return Err(CostsNotKnown::OtherBuild {
                    module: module.to_owned(),
                    theirs: theirs.clone(),
                    ours: build_id.unwrap_or("none").to_owned(),
                });
            }
        }
        if !others.contains_key(module) {
            let mut others: Vec<(&str, u64)> = others.into_iter().collect();
            others.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            let names: Vec<&str> = others.iter().take(3).map(|(name, _)| *name).collect();
            return Err(CostsNotKnown::OtherFiles {
                module: module.to_owned(),
                others: names.join(", "),
            });
        }
        Ok(MeasuredCosts {
            base: AtAddresses::of(base, module),
            last: AtAddresses::of(last, module),
        })
    }

    /// Connections at both rungs.
    pub fn connections(&self) -> [u32; 2] {
        [self.base.connections, self.last.connections]
    }

    /// CPU seconds per transaction at both rungs, at whatever instruction.
    pub fn all(&self) -> [f64; 2] {
        [&self.base, &self.last].map(|rung| rung.costs.all().unwrap_or(0.0))
    }

    /// What some instructions cost, each given with the places at which a thread is seen that waited for it. None without
    /// transactions, or without instructions.
    pub(crate) fn of_instructions(&self, sites: impl Iterator<Item = (u64, [u64; 2])>) -> Option<PlaceCost> {
        let mut itself = BTreeSet::new();
        let mut with_skid = BTreeSet::new();
        for (instruction, seen_at) in sites {
            itself.insert(instruction);
            with_skid.insert(instruction);
            with_skid.extend(seen_at);
        }
        if itself.is_empty() {
            return None;
        }
        let [_, all] = self.all();
        let with_skid_at = self.two(&with_skid)?;
        Some(PlaceCost {
            itself: self.two(&itself)?,
            with_skid: with_skid_at,
            share: if all > 0.0 { with_skid_at.last.value / all } else { 0.0 },
            all,
            samples: [&self.base, &self.last].map(|rung| rung.samples(&with_skid)),
            least_seen: self.last.costs.least_seen().unwrap_or(0.0),
        })
    }

    fn two(&self, addresses: &BTreeSet<u64>) -> Option<TwoRungs> {
        // Where nobody was seen it costs less than three samples' worth, not nothing (rule of three).
        let estimate = |rung: &AtAddresses| {
            let found = rung.estimate(addresses)?;
            Some(match rung.samples(addresses) {
                0 => Estimate {
                    high: rung.costs.least_seen(),
                    ..found
                },
                _ => found,
            })
        };
        Some(TwoRungs {
            base: estimate(&self.base)?,
            last: estimate(&self.last)?,
        })
    }
}

impl<'a> AtAddresses<'a> {
    pub(super) fn of(rung: &'a RungInstructions, module: &str) -> AtAddresses<'a> {
        let instructions = rung
            .costs
            .instructions()
            .filter(|(_, sampled)| sampled.at.module == module);
        let by_address = instructions.filter_map(|(id, sampled)| {
            let address = u64::try_from(sampled.at.address).ok()?;
            // The kernel, entered there, does not touch the place.
            let samples = Spent::ITSELF.map(|spent| rung.costs.samples(id, spent));
            Some((address, (id, samples.iter().sum())))
        });
        AtAddresses {
            connections: rung.connections.unwrap_or_default(),
            costs: &rung.costs,
            instructions: by_address.collect(),
        }
    }

    pub(super) fn estimate(&self, addresses: &BTreeSet<u64>) -> Option<Estimate> {
        let found = addresses.iter().filter_map(|address| self.instructions.get(address));
        self.costs.estimate(found.map(|(id, _)| *id), &Spent::ITSELF)
    }

    pub(super) fn samples(&self, addresses: &BTreeSet<u64>) -> u64 {
        let found = addresses.iter().filter_map(|address| self.instructions.get(address));
        found.map(|(_, samples)| samples).sum()
    }
}
