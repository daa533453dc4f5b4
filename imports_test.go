// Package caper has no code of its own; this test guards the layout of the others.
package caper

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// mayImport lists, for each top folder, the folders that its packages may import.
// "*" is everything. What is reachable through these is allowed too: whoever may
// import train may use the data types that train's functions take.
var mayImport = map[string][]string{
	"cmd":        {"*"},
	"sql":        {},
	"sqlexec":    {"sql"},
	"data":       {"sql", "sqlexec"},
	"annotate":   {"data", "sql", "sqlexec"},
	"cuda":       {},
	"engine":     {"cuda"},
	"kernels":    {"engine", "cuda"},
	"model":      {"kernels", "engine"},
	"train":      {"model", "annotate", "eval", "data", "configs"},
	"eval":       {"data", "sqlexec", "sql", "model"},
	"solve":      {"eval", "model", "data", "sqlexec", "sql"},
	"serve":      {"solve", "eval", "model", "data", "sqlexec", "sql"},
	"report":     {"train", "eval", "annotate", "solve"},
	"benchmarks": {"*"},
	"configs":    {},
}

// hiddenNames are folder names that say nothing about what they hold.
var hiddenNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

func TestImportsFollowTheLayout(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; packages++ {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from, ok := topFolder(p.ImportPath)
		if !ok {
			continue
		}
		allowed, known := reachable(from)
		if !known {
			t.Errorf("%s: folder %q is not in the layout", p.ImportPath, from)
			continue
		}
		for _, part := range strings.Split(p.ImportPath, "/") {
			for _, name := range hiddenNames {
				if part == name {
					t.Errorf("%s: a folder named %q hides its content", p.ImportPath, name)
				}
			}
		}
		for _, imported := range p.Imports {
			to, ok := topFolder(imported)
			if ok && to != from && !allowed["*"] && !allowed[to] {
				t.Errorf("%s imports %s: %q may import only %v", p.ImportPath, imported, from, mayImport[from])
			}
		}
	}
	if packages < 3 {
		t.Fatalf("go list found %d packages", packages)
	}
}

func topFolder(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "caper/")
	if !ok {
		return "", false
	}
	top, _, _ := strings.Cut(rest, "/")
	return top, true
}

func reachable(from string) (map[string]bool, bool) {
	direct, known := mayImport[from]
	all := map[string]bool{}
	for queue := direct; len(queue) > 0; {
		next := queue[0]
		queue = queue[1:]
		if !all[next] {
			all[next] = true
			queue = append(queue[:len(queue):len(queue)], mayImport[next]...)
		}
	}
	return all, known
}
