//! The same tests on a file and on a PostgreSQL that they start themselves.

/// The same tests on both databases.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() -> $crate::kit::Outcome {
                super::$test($crate::kit::Place::new(false)?).await
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() -> $crate::kit::Outcome {
                super::$test($crate::kit::Place::new(true)?).await
            })*
        }
    };
}

pub(crate) use on_both;
