package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadGold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gold.sql")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("\ufeffSELECT 1\tshop\r\n\nSELECT '\t'\tbank\n")
	questions, err := ReadGold(path)
	if err != nil || len(questions) != 2 || questions[0].Gold != "SELECT 1" || questions[0].DBID != "shop" ||
		questions[1].Gold != "SELECT '\t'" || questions[1].DBID != "bank" || questions[1].ID != IndexID(1) {
		t.Errorf("%+v %v", questions, err)
	}
	for text, want := range map[string]string{
		"SELECT 1\tshop\nSELECT 2\n": "gold.sql:2: want a gold query, a tab", "SELECT 1\t../shop\n": "gold.sql:1", "\n": "no gold queries",
	} {
		write(text)
		if _, err := ReadGold(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUseQuestions(t *testing.T) {
	b := &Benchmark{Name: "shops"}
	b.UseQuestions("mine", []Question{{ID: IndexID(0), DBID: "shop", Gold: "SELECT 1"}})
	questions, err := b.Questions("mine")
	if err != nil || len(questions) != 1 || questions[0].Split != "mine" || questions[0].Dataset != "shops" {
		t.Errorf("%+v %v", questions, err)
	}
}
