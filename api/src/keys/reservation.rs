//! The keys of Reservation (`scheduling.koordinator.sh/v1alpha1`), as Koordinator has them.
//!
//! Only the text; `plugins::reservation` knows what a value means and which default it has.

/// Annotation of a pod, JSON `{name, uid}`, written with its Binding: the reservation in whose room the pod stands.
pub const RESERVATION_ALLOCATED: &str = "scheduling.koordinator.sh/reservation-allocated";
/// Annotation of a pod, JSON: which reservations it must stand in.
pub const RESERVATION_AFFINITY: &str = "scheduling.koordinator.sh/reservation-affinity";
/// Annotation of a pod, JSON `{resourceNames}`: resources of which a reservation must hold just what the pod requests.
pub const EXACT_MATCH_RESERVATION: &str = "scheduling.koordinator.sh/exact-match-reservation";
/// Label of a pod: `"true"` sees nodes without any reservation, and takes none.
pub const RESERVATION_IGNORED: &str = "scheduling.koordinator.sh/reservation-ignored";

/// Label of a pod: `Reservation` has the pod be a reservation once it runs.
pub const POD_OPERATING_MODE: &str = "scheduling.koordinator.sh/operating-mode";
/// Annotation of such a pod, JSON as `spec.owners` of a reservation: who may use its room.
pub const RESERVATION_OWNERS: &str = "scheduling.koordinator.sh/reservation-owners";
/// Annotation of such a pod, JSON: who uses it. Others write it.
pub const RESERVATION_CURRENT_OWNER: &str = "scheduling.koordinator.sh/reservation-current-owner";

/// Annotation of a reservation, JSON `{resources}`: the resources that allocatePolicy Restricted is about.
pub const RESERVATION_RESTRICTED_OPTIONS: &str = "scheduling.koordinator.sh/reservation-restricted-options";
/// Label of a reservation, an integer: of several the least above 0 is taken first.
pub const RESERVATION_ORDER: &str = "scheduling.koordinator.sh/reservation-order";
/// Label of a reservation with `spec.preAllocation`: `"true"` places it over a bound pod of its owners, or not at all.
pub const PRE_ALLOCATION_REQUIRED: &str = "scheduling.koordinator.sh/pre-allocation-required";
/// Label of a reservation, an integer: its priority in the queue. Absent: that of its template, else the greatest there is.
pub const PRIORITY: &str = "koordinator.sh/priority";
