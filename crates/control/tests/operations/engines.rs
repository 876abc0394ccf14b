//! The two engines of the store, and tests that run on each.

/// Where what people decide is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    File,
    Postgres,
}

/// Each of these on both engines.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::engines::Engine::File).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(crate::engines::Engine::Postgres).await;
            })*
        }
    };
}

pub(crate) use on_both;
