package fill

import (
	"strings"

	"github.com/sqlc-dev/meyer/lexer"
)

// checks returns the conditions of the CHECK constraints in a CREATE TABLE
// statement, as written between their parentheses.
func checks(create string) (conditions []string) {
	tokens := lexer.Lex(create)
	for i := 0; i+1 < len(tokens); i++ {
		if !strings.EqualFold(tokens[i].Text(create), "CHECK") || tokens[i+1].Text(create) != "(" {
			continue
		}
		start, depth := tokens[i+1].End, 0
		for i++; i < len(tokens); i++ {
			switch tokens[i].Text(create) {
			case "(":
				depth++
			case ")":
				depth--
			}
			if depth == 0 {
				conditions = append(conditions, create[start:tokens[i].Pos])
				break
			}
		}
	}
	return conditions
}
