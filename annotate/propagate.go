package annotate

import (
	"math"

	"caper/sql"
)

// The reward of a node is the Gaussian decay of the root cause's penalty with
// the distance to it (caper.md 1.4.5):
//
//	r(v) = -alpha exp(-d(v, v*)^2 / (2 sigma^2))   v is v* or above it
//	r(v) = 0                                       otherwise
//	R_k  = min over the nodes v of clause k of r(v)

// decay is the reward at distance d from the root cause.
func (o Options) decay(d int) float64 {
	return -o.Alpha * math.Exp(-float64(d*d)/(2*o.Sigma*o.Sigma))
}

// clauseRewards returns R_k of every unit of s for the root cause v*, which lies
// in unit holder. A missing clause's v* has no unit: holder is -1. Blocks and
// wrappers score no clause. Without propagation only the holder is penalised.
func (o Options) clauseRewards(s *statement, root *sql.Node, holder int) []float64 {
	rewards := make([]float64, len(s.units))
	if holder >= 0 {
		rewards[holder] = -o.Alpha
	}
	if !o.Propagation {
		return rewards
	}
	var edges []sql.Dependency
	if o.DependencyEdges {
		edges = sql.Dependencies(s.tree, sql.Resolve(s.tree, s.schema))
	}
	for _, v := range sql.Upward(root, edges) {
		isMissing := v.Node == root && holder < 0
		if isMissing || isBareBlock(v.Node) || v.Node.IsCondensed() {
			continue
		}
		if k := s.holding(v.Node); k >= 0 && k != holder {
			// At least one edge: an item or order term is no edge below its clause.
			rewards[k] = min(rewards[k], o.decay(max(v.Distance, 1)))
		}
	}
	for k, r := range rewards {
		if -r < o.MinReward {
			rewards[k] = 0
		}
	}
	return rewards
}
