//! The clerk: every operation a person can do, one file each.
