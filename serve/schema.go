package serve

import (
	"net/http"
	"slices"
)

// known refuses names that are no database's: no other name comes near a path.
func (s *Service) known(id string) error {
	ids, err := s.ids()
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(ids, id); !found {
		return refuse(http.StatusNotFound, "db_id %q: there is no such database here", cut(id, 100))
	}
	return nil
}

// databases answers GET /api/databases: {"databases": [...], "generators": N, "examples":
// whether there are any, "scores": whether there is a reward model}.
func (s *Service) databases(w http.ResponseWriter, r *http.Request) {
	ids, err := s.ids()
	if err != nil {
		replyError(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"databases": ids, "generators": len(s.Generators), "examples": len(s.Examples) > 0, "scores": s.Scorer != nil})
}

// table is one of a database's.
type table struct {
	Name    string   `json:"name"`
	Columns []column `json:"columns"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// schema answers GET /api/databases/ID: {"tables": [...], "examples": [questions]}.
func (s *Service) schema(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := s.known(id); err != nil {
		replyError(w, err)
		return
	}
	schema, err := s.Bench.Schema(id)
	if err != nil {
		replyError(w, err)
		return
	}
	tables := []table{}
	for _, t := range schema.Tables {
		described := table{Name: t.Name, Columns: []column{}}
		for _, c := range t.Columns {
			described.Columns = append(described.Columns, column{c.Name, c.Type})
		}
		tables = append(tables, described)
	}
	const most = 100
	examples := []Question{}
	for _, q := range s.Examples {
		if q.Database == id && len(examples) < most {
			examples = append(examples, q)
		}
	}
	reply(w, http.StatusOK, map[string]any{"tables": tables, "examples": examples})
}
