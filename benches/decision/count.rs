//! One side of a comparison by itself, for a profiler that counts: what differs between two sides is exact there, down to the
//! function, where times differ by the hour.

use super::{devices, numa, reservations};

/// Number of batches unless another one is given. The first also makes what is kept per shape.
const BATCHES: usize = 2;

/// Places batches of pods. Each name is a row of the other benches.
pub(crate) fn run(what: &str, batches: Option<usize>) {
    let mut place: Box<dyn FnMut() -> f64> = match what {
        "default" => reservations::side(None),
        "reservation" => reservations::side(Some(0)),
        "beside-reservations" => reservations::side(Some(1)),
        "numa-off" => numa::side(1, false, false),
        "numa" => numa::side(1, true, false),
        "lsr" => numa::side(1, true, true),
        "numa-off-150" => numa::side(150, false, false),
        "numa-150" => numa::side(150, true, false),
        "devices-off" => devices::side(false, false, false),
        "shares-counted" => devices::side(false, true, false),
        "shares" => devices::side(true, true, false),
        "devices-off-large" => devices::side(false, false, true),
        "shares-counted-large" => devices::side(false, true, true),
        "shares-large" => devices::side(true, true, true),
        other => panic!("count {other:?}: no such side; count.rs lists them"),
    };
    for _ in 0..batches.unwrap_or(BATCHES) {
        println!("{:.0} pods/s", place());
    }
}
