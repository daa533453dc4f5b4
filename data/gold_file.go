package data

import (
	"fmt"
	"strings"
)

// ReadGold reads the gold file of the official evaluators, one "SQL<TAB>db_id" a
// line, as questions without text. Blank lines, which part dialogues, are skipped.
func ReadGold(path string) ([]Question, error) {
	var questions []Question
	for l, err := range readLines(path) {
		if err != nil {
			return nil, err
		}
		if l.blank() {
			continue
		}
		text := strings.TrimSpace(string(l.text))
		tab := strings.LastIndexByte(text, '\t')
		if tab < 0 || !isName(text[tab+1:]) {
			return nil, l.errorf("want a gold query, a tab and the name of its database")
		}
		questions = append(questions, Question{
			ID: IndexID(len(questions)), Gold: strings.TrimSpace(text[:tab]), DBID: text[tab+1:],
		})
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s: no gold queries", path)
	}
	return questions, nil
}

// UseQuestions puts questions in the place of a split's file.
func (b *Benchmark) UseQuestions(split string, questions []Question) {
	for i := range questions {
		questions[i].Dataset, questions[i].Split = b.Name, split
	}
	b.keepQuestions(split, questions)
}
