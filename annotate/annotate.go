// Package annotate turns executed rollouts into clause-level preference tuples,
// without human labels (caper.md 1.4.1-1.4.6).
//
// Two sources feed it. A rollout that is correct is mutated: one type-preserving
// change of one node, kept if it changes the result (inject.go, mutation.go and
// the operators in mutate_*.go). A rollout that fails is repaired clause by
// clause towards gold until it is correct, which tells the clause where it went
// wrong (counterfactual.go, repair.go, rename.go). Both yield a correct and a
// wrong query that share their text up to the faulty clause, and the root-cause
// node v* in the wrong one.
//
// From there on they are the same: the penalty of v* decays upwards through the
// tree (propagate.go), the lowest reward of a clause's nodes is the clause's,
// and each clause with a negative reward makes a tuple (pair.go).
//
// Changed clauses are written in the style of the query they stand in, byte for
// byte where nothing changed (package style), so that a reward model has no
// way to tell right from wrong but by what a clause says.
package annotate
