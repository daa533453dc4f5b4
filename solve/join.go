package solve

import (
	"strings"

	"caper/sql"
)

// isNullable reports that an outer join of the block may fill the source's columns
// with NULL.
func isNullable(scope *sql.Scope, source *sql.Source) bool {
	at := -1
	for i, s := range scope.Sources {
		if s == source {
			at = i
		}
	}
	for i, s := range scope.Sources {
		if join := s.Node.Parent; join.Kind == sql.Join {
			switch {
			case strings.Contains(join.Value, "FULL") && at >= 0,
				strings.Contains(join.Value, "LEFT") && i == at,
				strings.Contains(join.Value, "RIGHT") && at >= 0 && at < i:
				return true
			}
		}
	}
	return false
}

// isOuter reports that a join keeps rows without a partner.
func isOuter(join *sql.Node) bool {
	for _, word := range []string{"LEFT", "RIGHT", "FULL"} {
		if strings.Contains(join.Value, word) {
			return true
		}
	}
	return false
}
