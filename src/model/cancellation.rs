//! Cancels work that nobody waits for any more.
//!
//! Work for a reader runs on a copy of the state and may cost more than anybody foresaw. The server wraps it in
//! [`run_cancellable`], whose [`Cancellation`] says when the reader has left or time is up. Long loops call [`check`],
//! however deep they are; it cancels the work by unwinding, as Salsa does with cancelled queries, and drops what the
//! work owned.
//!
//! Cancellation belongs to the thread, because a loop worth checking is often far below the code that answers. The
//! scheduling thread has none, so nothing it does can be cancelled and no decision depends on patience; there a check
//! only reads a flag. *Invariant:* `check` is never called while a lock is held or shared data is half written.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Decides when work is no longer worth doing. The HTTP server implements it.
pub trait Cancellation {
    /// Returns whether nobody waits any more, or time is up.
    fn is_over(&self) -> bool;
}

/// The work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

thread_local! {
    static IS_LIMITED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Rc<dyn Cancellation>>> = const { RefCell::new(None) };
}

/// Runs work and cancels it when patience is over. Other panics of the work pass through. Must not be nested.
pub fn run_cancellable<T>(patience: Rc<dyn Cancellation>, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    CURRENT.set(Some(patience));
    IS_LIMITED.set(true);
    // The work owns what it changes and shares the rest immutably, so nothing half-changed is visible afterwards.
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_LIMITED.set(false);
    CURRENT.set(None);
    done.or_else(|payload| match payload.downcast::<Cancelled>() {
        Ok(given_up) => Err(*given_up),
        Err(panic) => resume_unwind(panic),
    })
}

/// Cancels the work of [`run_cancellable`] when its patience is over, else returns. Call it once per step of every loop
/// whose length or cost users choose, where a step takes at least some microseconds.
#[inline]
pub fn check() {
    if IS_LIMITED.get() {
        look();
    }
}

#[cold]
fn look() {
    let is_over = CURRENT.with_borrow(|patience| patience.as_ref().is_some_and(|p| p.is_over()));
    if is_over {
        // Destructors may check too while the stack unwinds, and must not unwind again.
        IS_LIMITED.set(false);
        resume_unwind(Box::new(Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steps(Cell<usize>);

    impl Cancellation for Steps {
        fn is_over(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }
    }

    /// Checks once more while the stack unwinds.
    struct Checks;

    impl Drop for Checks {
        fn drop(&mut self) {
            check();
        }
    }

    #[test]
    fn work_ends_where_patience_does() {
        let steps = |n| Rc::new(Steps(Cell::new(n)));
        assert_eq!(run_cancellable(steps(3), || (0..2).for_each(|_| check())), Ok(()));
        let mut done = 0;
        let endless = || loop {
            let _checks = Checks;
            check();
            done += 1;
        };
        assert_eq!(run_cancellable::<()>(steps(5), endless), Err(Cancelled));
        assert_eq!(done, 2, "each step checks twice");
        // Afterwards there is no patience, so a check cancels nothing.
        check();
    }

    #[test]
    fn a_panic_is_not_taken_for_it() {
        let work = || run_cancellable(Rc::new(Steps(Cell::new(9))), || resume_unwind(Box::new("a defect")));
        let payload = catch_unwind(AssertUnwindSafe(work))
            .map(|_: Result<(), Cancelled>| ())
            .expect_err("it passes through");
        assert_eq!(payload.downcast_ref(), Some(&"a defect"));
        check();
    }
}
