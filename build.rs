//! Tells the program which commit it is built from, for `/version`.
//!
//! `PELLUCID_GIT_COMMIT` wins, for builds from an archive or in an image. Else a release build asks git. A build for
//! development does not: every commit would have this package and its tests built anew.

use std::env;
use std::path::Path;
use std::process::Command;

const GIVEN: &str = "PELLUCID_GIT_COMMIT";

fn main() {
    println!("cargo:rerun-if-env-changed={GIVEN}");
    println!("cargo:rerun-if-changed=build.rs");
    let given = env::var(GIVEN).ok().filter(|commit| !commit.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let commit = given.or_else(|| if is_release { commit_of(Path::new(&folder)) } else { None });
    println!("cargo:rustc-env={GIVEN}={}", commit.unwrap_or_default());
}

/// Returns the commit of a checkout, and has the build run again when it changes. `None` without git, and for a copy
/// within the checkout of something else.
pub(crate) fn commit_of(folder: &Path) -> Option<String> {
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != folder.canonicalize().ok()? {
        return None;
    }
    // The first changes with every checkout, the second with every commit too. A file that is not there would have
    // the script run at every build.
    for name in ["HEAD", "logs/HEAD"] {
        let path = folder.join(git(folder, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(folder, &["rev-parse", "HEAD"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
