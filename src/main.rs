//! The `pellucid` binary: what must be set once per process, then [`pellucid::cli`].

use std::process::ExitCode;

/// Many small allocations on several threads: markedly faster than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Refused only when a provider is installed already, and then there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    pellucid::cli::main()
}
