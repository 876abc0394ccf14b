//! Replacing one layer gives the same policy as compiling everything anew.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use crate::ask::{cases, compile, engine};
use crate::generate::{queries, world};

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_user_replaced(world in world(), other in world(), queries in queries(40), local in any::<bool>()) {
        let mut whole = world.clone();
        let name = if local { "ann" } else { "bob" };
        let user = other.input.users.get(name).cloned().unwrap_or_default();
        whole.input.users.insert(name.to_owned(), user.clone());
        let (whole, replaced) = (compile(&whole)?, compile(&world)?.with_user(7, name, &user));
        for query in &queries {
            prop_assert_eq!(engine(&replaced, query), engine(&whole, query), "{:?}", query);
        }
    }

    #[test]
    fn servers_replaced(world in world(), other in world(), queries in queries(40), few in 0_u8..4) {
        let mut whole = world;
        // Rules are typed by the tools of the servers they were made for.
        whole.input.base.rules.clone_from(&other.input.base.rules);
        whole.input.servers.clone_from(&other.input.servers);
        let mut before = whole.clone();
        before.input.servers.truncate(usize::from(few));
        let replaced = compile(&before)?.with_servers(7, &whole.input.servers);
        prop_assert!(replaced.is_ok());
        let whole = compile(&whole)?;
        for (query, replaced) in queries.iter().zip(replaced.iter().cycle()) {
            prop_assert_eq!(engine(replaced, query), engine(&whole, query), "{:?}", query);
        }
    }

    #[test]
    fn the_local_files_replaced(world in world(), other in world(), queries in queries(40)) {
        let mut whole = world.clone();
        whole.input.local.clone_from(&other.input.local);
        let stored = world.input.users.get("ann");
        let replaced = compile(&world)?.with_local(7, &other.input.local, stored, &world.input.servers);
        let whole = compile(&whole)?;
        for query in &queries {
            prop_assert_eq!(engine(&replaced, query), engine(&whole, query), "{:?}", query);
        }
    }
}
