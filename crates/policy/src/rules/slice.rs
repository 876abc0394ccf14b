//! Which rules a call needs: an index by the entities rules name, and the slices found so far.

use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock};

use cedar_policy::{Effect, PolicySet};
use hashbrown::{DefaultHashBuilder, HashMap};

use super::facts::Facts;
use super::mentions::Needs;
use super::parse::Rule;
use super::scope::{Kind, Named, Part};

const SHARDS: usize = 16;
/// Slices kept per shard; callers and tools repeat, so this is seldom reached.
const SLICES_PER_SHARD: usize = 512;

/// Slices by the rules they hold.
type Shard = RwLock<HashMap<Box<[u32]>, Arc<Slice>>>;

/// Rules by the entity their head names, and slices by the rules they hold.
#[derive(Debug)]
pub(crate) struct Slices {
    /// Rules whose head names no entity.
    general: Vec<u32>,
    /// By kind of entity, then by id.
    named: [HashMap<String, Vec<u32>>; Kind::COUNT],
    shards: [Shard; SHARDS],
    hasher: DefaultHashBuilder,
}

impl Slices {
    pub(crate) fn index(rules: &[Rule]) -> Self {
        let mut slices = Self {
            general: Vec::new(),
            named: std::array::from_fn(|_| HashMap::new()),
            shards: std::array::from_fn(|_| RwLock::default()),
            hasher: DefaultHashBuilder::default(),
        };
        for rule in rules.iter().filter(|rule| rule.scope.applies_to_action) {
            // The resource is asked first: tools are many, so it usually narrows more.
            match rule.scope.resource.named().or_else(|| rule.scope.principal.named()) {
                None => slices.general.push(rule.index),
                Some(named) => {
                    if let Some(by_id) = slices.named.get_mut(named.kind.index()) {
                        by_id.entry(named.id.clone()).or_default().push(rule.index);
                    }
                }
            }
        }
        slices
    }

    /// The rules whose heads fit the call.
    pub(crate) fn for_call(&self, rules: &[Rule], facts: &Facts<'_>) -> Arc<Slice> {
        let mut indexes: Vec<u32> = Vec::with_capacity(self.general.len() + 4);
        let fits = |index: &&u32| {
            rules.get(**index as usize).is_some_and(|rule| {
                part_fits(
                    &rule.scope.principal,
                    |named| facts.principal_is(named),
                    |named| facts.principal_in(named),
                    facts.principal_kind(),
                ) && part_fits(
                    &rule.scope.resource,
                    |named| facts.resource_is(named),
                    |named| facts.resource_in(named),
                    Kind::Tool,
                )
            })
        };
        indexes.extend(self.general.iter().filter(fits));
        let named = |kind: Kind| self.named.get(kind.index()).filter(|by_id| !by_id.is_empty());
        facts.for_each_entity(|kind, id| {
            let rules_of_entity = named(kind).and_then(|by_id| by_id.get(&*id()));
            indexes.extend(rules_of_entity.into_iter().flatten().filter(fits));
        });
        indexes.sort_unstable();
        indexes.dedup();
        self.cached(rules, &indexes)
    }

    fn cached(&self, rules: &[Rule], indexes: &[u32]) -> Arc<Slice> {
        let shard_index = usize::try_from(self.hasher.hash_one(indexes) % SHARDS as u64).unwrap_or(0);
        let Some(shard) = self.shards.get(shard_index) else {
            return Arc::new(Slice::build(rules, indexes));
        };
        if let Some(slice) = shard.read().unwrap_or_else(PoisonError::into_inner).get(indexes) {
            return slice.clone();
        }
        let slice = Arc::new(Slice::build(rules, indexes));
        let mut slices = shard.write().unwrap_or_else(PoisonError::into_inner);
        if slices.len() >= SLICES_PER_SHARD {
            slices.clear();
        }
        slices.insert(indexes.into(), slice.clone());
        slice
    }
}

fn part_fits(part: &Part, is: impl Fn(&Named) -> bool, is_in: impl Fn(&Named) -> bool, kind: Kind) -> bool {
    match part {
        Part::Any => true,
        Part::Is(wanted) => *wanted == kind,
        Part::Equals(named) => is(named),
        Part::In(named) => is(named) || is_in(named),
        Part::IsIn(wanted, named) => *wanted == kind && (is(named) || is_in(named)),
    }
}

/// An answer that no fact about the call can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    Permit(u32),
    Forbid(u32),
    Hold(u32),
    NoPermit,
}

/// The rules for some calls, ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Slice {
    constant: Option<Constant>,
    /// The rules, in the order they were read.
    indexes: Box<[u32]>,
    needs: Needs,
    all: PolicySet,
    permits: PolicySet,
    independent: PolicySet,
    independent_permits: PolicySet,
    has_dependent_permit: bool,
}

impl Slice {
    fn build(rules: &[Rule], indexes: &[u32]) -> Self {
        let mut slice = Self::build_unsimplified(rules, indexes);
        slice.constant = constant(&chosen(rules, indexes));
        slice
    }

    /// A slice that always asks Cedar.
    pub(crate) fn build_unsimplified(rules: &[Rule], indexes: &[u32]) -> Self {
        let chosen = chosen(rules, indexes);
        let set = |keep: &dyn Fn(&Rule) -> bool| {
            let policies = chosen.iter().filter(|rule| keep(rule)).map(|rule| rule.policy.clone());
            // Ids are our own numbers, so none can collide.
            PolicySet::from_policies(policies).unwrap_or_default()
        };
        let is_permit = |rule: &Rule| rule.effect == Effect::Permit;
        let is_independent = |rule: &Rule| !rule.needs.depends_on_arguments();
        Self {
            constant: None,
            indexes: indexes.into(),
            needs: united(&chosen),
            all: set(&|_| true),
            permits: set(&is_permit),
            independent: set(&is_independent),
            independent_permits: set(&|rule| is_permit(rule) && is_independent(rule)),
            has_dependent_permit: chosen.iter().any(|rule| is_permit(rule) && !is_independent(rule)),
        }
    }

    pub(crate) fn constant(&self) -> Option<&Constant> {
        self.constant.as_ref()
    }

    pub(crate) fn needs(&self) -> &Needs {
        &self.needs
    }

    pub(crate) fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// The same rules with other needs, for tests that know them by other means.
    #[cfg(test)]
    pub(crate) fn needing(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    pub(crate) fn all(&self) -> &PolicySet {
        &self.all
    }

    pub(crate) fn permits(&self) -> &PolicySet {
        &self.permits
    }

    /// Rules that look at nothing the arguments say.
    pub(crate) fn independent(&self) -> &PolicySet {
        &self.independent
    }

    pub(crate) fn independent_permits(&self) -> &PolicySet {
        &self.independent_permits
    }

    pub(crate) fn has_dependent_permit(&self) -> bool {
        self.has_dependent_permit
    }
}

fn united(rules: &[&Rule]) -> Needs {
    let mut needs = Needs::default();
    rules.iter().for_each(|rule| needs.unite(&rule.needs));
    needs
}

fn chosen<'a>(rules: &'a [Rule], indexes: &[u32]) -> Vec<&'a Rule> {
    indexes.iter().filter_map(|index| rules.get(*index as usize)).collect()
}

/// The answer of rules none of which has a condition.
fn constant(rules: &[&Rule]) -> Option<Constant> {
    if rules.iter().any(|rule| rule.has_conditions) {
        return None;
    }
    let forbids = || rules.iter().filter(|rule| rule.effect == Effect::Forbid);
    let permit = rules.iter().find(|rule| rule.effect == Effect::Permit);
    let hard = forbids().find(|rule| rule.hold.is_none());
    Some(match (hard, forbids().next(), permit) {
        (Some(rule), _, _) => Constant::Forbid(rule.index),
        (None, Some(rule), Some(_)) => Constant::Hold(rule.index),
        (None, None, Some(rule)) => Constant::Permit(rule.index),
        (None, _, None) => Constant::NoPermit,
    })
}
