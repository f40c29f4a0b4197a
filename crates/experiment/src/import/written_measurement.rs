//! A recording that became a measurement is written, and summed up beside where it is alone.

use super::imported_measurement::{ImportedMeasurement, ImportedSamples};
use super::{ImportFailure, ImportResult};
use scaleprof_analysis::summarise;
use scaleprof_bundle::{BundleWriter, Manifest, MeasurementRow, MeasurementTables, Samples};
use scaleprof_profile::both;
use scaleprof_profile::import::Leftovers;

/// Writes all of it.
pub(super) fn write(bundle: &BundleWriter, imported: &ImportedMeasurement) -> Result<(), ImportFailure> {
    write_measurement(bundle, &imported.rung, imported.rows.tables(), &imported.rest)
}

fn write_measurement(
    bundle: &BundleWriter,
    rung: &MeasurementRow,
    tables: MeasurementTables<'_>,
    samples: &ImportedSamples,
) -> Result<(), ImportFailure> {
    Ok(bundle.write_measurement_with(rung, tables, samples.len(), |places| samples.rows(places))?)
}

/// Writes it and sums it up at once, from what is in memory. That the bundle is complete is written last.
pub(super) fn sum_up_and_write(
    bundle: &BundleWriter,
    manifest: &Manifest,
    imported: ImportedMeasurement,
    samples: Samples,
) -> Result<ImportResult, ImportFailure> {
    let rung = imported.rung.clone();
    let (of_memory, rest) = imported.into_bundle(bundle.path(), manifest, samples);
    let write_all = || {
        write_measurement(bundle, &rung, of_memory.tables_without_samples(), &rest)?;
        Ok::<(), ImportFailure>(bundle.write_settings(&[])?)
    };
    let (summary, written) = both(|| summarise(&of_memory), write_all);
    written?;
    bundle.write_manifest(manifest)?;
    Ok(ImportResult {
        bundle: of_memory,
        summary,
        leftovers: Leftovers::of(rest),
    })
}
