//! `kubectl rabbitmq-migration`: shows and steers migrations. Exit codes: 0 done, 1 not.

use clap::Parser;
use kubectl::arguments::{Arguments, Command};
use kubectl::error::{Error, line};
use kubectl::render::Look;
use kubectl::{commands, connect};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            return error.print().map_or(ExitCode::FAILURE, |()| code);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let mut out = std::io::stdout();
    if matches!(arguments.command, Command::Version) {
        let written = out.write_all(commands::version().as_bytes());
        return written.map_err(|e| Error::Print { source: Box::new(e) });
    }
    // One TLS provider for the process. That one was installed already is no harm.
    let _already = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::Start { source: e })?;
    runtime.block_on(async {
        let migrations = connect::connect(&arguments.target).await?;
        let look = Look { color, ..Look::default() };
        Box::pin(commands::run(&arguments.command, &migrations, look, &mut out)).await
    })
}
