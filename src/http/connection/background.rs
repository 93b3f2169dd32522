//! Lets a thread step back behind the thread that schedules, where the system gives each thread a priority of its own.
//!
//! On Linux a nice value belongs to a thread. Elsewhere it belongs to the whole process, and nothing is done. A thread
//! that has stepped back stays there, because going forward again takes a privilege.

/// How far a thread steps back: beside one of ordinary priority on one core it has about a quarter of the time, so that it
/// goes on, if slowly, when every core is busy.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Lowers the priority of this thread, once. A system that refuses leaves it as it is.
#[cfg(target_os = "linux")]
pub(crate) fn step_back() {
    thread_local!(static HAS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    if HAS.replace(true) {
        return;
    }
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "a thread that works for readers keeps its priority");
    }
}

/// Does nothing: here a priority belongs to the whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn step_back() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_steps_back_once_and_by_itself() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let after = std::thread::spawn(move || {
            step_back();
            step_back();
            nice()
        });
        assert_eq!(after.join().unwrap(), (before + NICE).min(19));
        assert_eq!(nice(), before);
    }
}
