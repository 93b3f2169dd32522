//! Whether anybody still waits for what is being worked out.
//!
//! Work for a reader runs on a copy of the state and may cost more than anybody foresaw. The edge wraps it in
//! [`while_patient`] and says when its reader has left or time is up; long loops call [`check`], however deep they are,
//! and the work is left from there by unwinding, as Salsa does with cancelled queries. What it worked on goes with it.
//!
//! The patience belongs to the thread, because a loop that is worth checking is often far below whoever answers.
//! The scheduling thread has none, so nothing it does can be given up and no decision depends on this; there a check is
//! a look at a flag. *Invariant:* `check` is never called while a lock is held or shared data is half written.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Says when work is not worth going on with. The edge implements it.
pub trait Patience {
    /// Whether nobody waits any more, or time is up.
    fn is_over(&self) -> bool;
}

/// The work was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp;

thread_local! {
    static IS_LIMITED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Rc<dyn Patience>>> = const { RefCell::new(None) };
}

/// Does work that ends early when patience is over. Panics of the work pass through. Not to be nested.
pub fn while_patient<T>(patience: Rc<dyn Patience>, work: impl FnOnce() -> T) -> Result<T, GivenUp> {
    CURRENT.set(Some(patience));
    IS_LIMITED.set(true);
    // The work owns or shares immutably whatever it touches: nothing half changed can be seen afterwards.
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_LIMITED.set(false);
    CURRENT.set(None);
    done.or_else(|payload| match payload.downcast::<GivenUp>() {
        Ok(given_up) => Err(*given_up),
        Err(panic) => resume_unwind(panic),
    })
}

/// Leaves the work of [`while_patient`] when its patience is over; else returns. To be called once per step of every
/// loop whose length or cost users choose, a step being at least some microseconds.
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
        // What is dropped on the way may check too, and must not unwind again.
        IS_LIMITED.set(false);
        resume_unwind(Box::new(GivenUp));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steps(Cell<usize>);

    impl Patience for Steps {
        fn is_over(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }
    }

    /// Checks once more while it is unwound.
    struct Checks;

    impl Drop for Checks {
        fn drop(&mut self) {
            check();
        }
    }

    #[test]
    fn work_ends_where_patience_does() {
        let steps = |n| Rc::new(Steps(Cell::new(n)));
        assert_eq!(while_patient(steps(3), || (0..2).for_each(|_| check())), Ok(()));
        let mut done = 0;
        let endless = || loop {
            let _checks = Checks;
            check();
            done += 1;
        };
        assert_eq!(while_patient::<()>(steps(5), endless), Err(GivenUp));
        assert_eq!(done, 2, "each step checks twice");
        // Afterwards there is no patience, and nothing ends.
        check();
    }

    #[test]
    fn a_panic_is_not_taken_for_it() {
        let work = || while_patient(Rc::new(Steps(Cell::new(9))), || resume_unwind(Box::new("a defect")));
        let payload = catch_unwind(AssertUnwindSafe(work))
            .map(|_: Result<(), GivenUp>| ())
            .expect_err("it passes through");
        assert_eq!(payload.downcast_ref(), Some(&"a defect"));
        check();
    }
}
