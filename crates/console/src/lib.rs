//! The desk: the HTTP face of the clerk.
