//! Tests of the registry and of single checks.
