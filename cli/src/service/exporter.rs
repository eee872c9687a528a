//! The exporter of the demonstration's service.

use std::io;

use lumalloc_exporter::{Exporter, StartError};

use crate::arguments::{ServeArguments, ShownArguments};
use crate::failure::{Failure, Outcome};
use crate::switch;

/// Starts the exporter, if it is wanted and the service runs on lumalloc.
pub(super) fn start(arguments: &ServeArguments) -> Outcome<Option<Exporter>> {
    if !arguments.show || switch::is_system() {
        return Ok(None);
    }
    let started = match begin(&arguments.shown) {
        Err(StartError::Listen(_, error))
            if arguments.any_port && error.kind() == io::ErrorKind::AddrInUse =>
        {
            let mut shown = arguments.shown.clone();
            shown.exporter.set_port(0);
            begin(&shown)
        }
        started => started,
    };
    started.map(Some).map_err(|error| Failure::new(format!("exporter: {}", message(&error))))
}

/// The message, with the options of this command in place of what programs have.
fn message(error: &StartError) -> String {
    match error {
        StartError::NeedsToken(address) => format!(
            "cannot listen on {address}: what is not a loopback address needs a token file \
             (--token-file PATH); metrics alone may be served there without one (--metrics ADDRESS)"
        ),
        error => error.to_string(),
    }
}

fn begin(shown: &ShownArguments) -> Result<Exporter, StartError> {
    let mut builder = Exporter::builder().listen(shown.exporter).allow_hosts(&shown.allow_host);
    if let Some(metrics) = shown.metrics {
        builder = builder.metrics_on(metrics);
    }
    if let Some(file) = &shown.token_file {
        builder = builder.token_file(file);
    }
    if let Some(directory) = &shown.dump_directory {
        builder = builder.dump_directory(directory);
    }
    builder.start()
}
