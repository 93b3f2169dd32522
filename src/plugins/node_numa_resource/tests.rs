//! Tests of the plugin through its points.
