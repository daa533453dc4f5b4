// Command caper turns sampled SQL into clause-level preferences, trains reward
// models on them, and measures the result. Run it without arguments for the list
// of commands; each has --help with an example.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line: one field a command, one file a command.
type commands struct {
	Demo   demoCommand `cmd:"" help:"The whole idea on built-in data: benchmark, rollouts, tuples, a trained Clause-PRM, a report."`
	Sample struct {
		Write sampleCommand `cmd:"" default:"withargs" help:"Write the built-in sample benchmark and simulated rollouts for it; the word write may be left out."`
		Fill  fillCommand   `cmd:"" help:"Fill the empty databases of a benchmark so that its gold queries return rows."`
	} `cmd:"" help:"Write the built-in sample benchmark, or fill empty databases."`
	Annotate     annotateCommand     `cmd:"" help:"Turn rollouts into clause-level preference tuples, by executing queries."`
	Trajectories trajectoriesCommand `cmd:"" help:"Label runs of several turns: where did each go wrong for good?"`
	Train        struct {
		PRM  trainPRMCommand  `cmd:"" name:"prm" help:"Train a Clause-PRM on preference tuples."`
		SFT  trainSFTCommand  `cmd:"" name:"sft" help:"Train a policy on queries that are right: a benchmark's gold, or candidates judged correct."`
		GRPO trainGRPOCommand `cmd:"" name:"grpo" help:"Train a policy on the outcomes and clause scores of its own answers."`
		DAPO trainDAPOCommand `cmd:"" name:"dapo" help:"Train a specialist in two stages, on questions that it answers right now and then."`
	} `cmd:"" help:"Train a model."`
	Ablate ablateCommand `cmd:"" help:"What each part of the method is worth: variants x seeds, compared pair by pair."`
	Doctor doctorCommand `cmd:"" help:"What of this machine caper can use, what is missing, and how to get it."`
	Bench  struct {
		Kernels benchKernelsCommand `cmd:"" help:"Every operator of a training step, and whole steps, at the shapes of a published model."`
		Cubins  benchCubinsCommand  `cmd:"" help:"What each kernel takes of a card: registers, shared memory, occupancy. No card needed."`
		Show    benchShowCommand    `cmd:"" help:"Markdown of what caper bench kernels --json printed."`
	} `cmd:"" help:"Measure the kernels on this machine."`
	Plan     planCommand     `cmd:"" help:"Memory and time of training a model on some GPUs; no GPU needed."`
	Localize localizeCommand `cmd:"" help:"Find the faulty clause of failed queries with a Clause-PRM, and measure it."`
	Verify   verifyCommand   `cmd:"" help:"Choose one of a question's samples by vote and by a Clause-PRM, and measure each way."`
	Report   reportCommand   `cmd:"" help:"Show runs: a self-contained HTML page, or TensorBoard event files."`
	Score    scoreCommand    `cmd:"" help:"Score every clause of candidate queries."`
	Eval     struct {
		EX      evalEXCommand      `cmd:"" name:"ex" help:"Execution accuracy of predictions."`
		EM      evalEMCommand      `cmd:"" name:"em" help:"Spider's exact match, with hardness and partial scores."`
		VES     evalVESCommand     `cmd:"" name:"ves" help:"BIRD's valid efficiency score."`
		RVES    evalRVESCommand    `cmd:"" name:"rves" help:"Mini-dev's reward-based efficiency score."`
		SoftF1  evalSoftF1Command  `cmd:"" name:"softf1" help:"Mini-dev's Soft-F1."`
		Compare evalCompareCommand `cmd:"" help:"Two systems question by question: McNemar's test and a bootstrap interval."`
	} `cmd:"" help:"Measure predictions as the official evaluators do."`
	Solve struct {
		All        solveAllCommand        `cmd:"" default:"withargs" help:"All three stages, in a folder; the word all may be left out."`
		Candidates solveCandidatesCommand `cmd:"" help:"Let models write candidate queries."`
		Repair     solveRepairCommand     `cmd:"" help:"Screen and run candidates, and mend those that do not work."`
		Select     solveSelectCommand     `cmd:"" help:"Choose one of each question's candidates, by what their results share."`
		Ablate     solveAblateCommand     `cmd:"" help:"What each part of the pipeline is worth: one part changed at a time."`
	} `cmd:"" help:"Answer questions: candidates of several models, repaired, and one of them chosen."`
	Serve    serveCommand    `cmd:"" help:"Answer questions over HTTP: a page, and JSON for programs."`
	Diff     diffCommand     `cmd:"" help:"What sets two queries apart: the cheapest edit script, both texts marked."`
	Exec     execCommand     `cmd:"" help:"Run one query read-only, under limits."`
	Tokenize tokenizeCommand `cmd:"" help:"Text to token ids and back."`
	Generate generateCommand `cmd:"" help:"Sample from a language model."`
	Logprobs logprobsCommand `cmd:"" help:"Log-probs of token sequences under a language model."`
	Inspect  inspectCommand  `cmd:"" help:"Show what is in a tuple file, a safetensors file or a model folder; compare two checkpoints."`
	Export   exportCommand   `cmd:"" help:"A plain model out of an adapter or an official checkpoint."`
	Convert  convertCommand  `cmd:"" help:"The same weights in another element type or cut into other shards."`
}

// Exit statuses; 0 is done.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a wrong use of a command that only its Run can notice.
type usageError struct{ error }

func main() {
	os.Exit(execute(os.Args[1:]))
}

func execute(arguments []string) int {
	var c commands
	helped := false
	parser, err := kong.New(&c, kong.Name("caper"), kong.Exit(func(int) { helped = true }),
		kong.Description("Clause-level process supervision for text-to-SQL."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	if err != nil {
		panic(err) // the struct above is wrong
	}
	if len(arguments) == 0 {
		arguments = []string{"--help"}
	}
	words, err := parser.Parse(joinNegatives(arguments))
	if helped {
		return 0
	}
	if err != nil {
		complain(fmt.Errorf("%w; see %s --help", err, commandOf(err)))
		return exitUsage
	}
	_, waits := words.Selected().Target.Addr().Interface().(patient)
	ctx, stop := interruptible(waits)
	defer stop()
	words.BindTo(ctx, (*context.Context)(nil))
	err = words.Run()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // whoever reads our output has seen enough
	case errors.Is(err, context.Canceled):
		err = errInterrupted
	}
	complain(remedied(err))
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// complain says what went wrong in one line, whatever texts of the input it cites.
func complain(err error) {
	const start, end = 700, 300 // of what is too long to read: where, and the remedy
	message := strings.NewReplacer("\r", "", "\n", " ").Replace(err.Error())
	if len(message) > start+end {
		message = strings.ToValidUTF8(message[:start], "") + " ... " + strings.ToValidUTF8(message[len(message)-end:], "")
	}
	fmt.Fprintf(os.Stderr, "caper: %s\n", message)
}

// remedied adds what to do to an error of the system that nobody has explained.
func remedied(err error) error {
	if remedy := scarcity(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	var bare *fs.PathError
	if !errors.As(err, &bare) || !strings.HasSuffix(err.Error(), bare.Error()) {
		return err
	}
	remedy := "see to it and run the command again"
	switch {
	case errors.Is(bare, fs.ErrNotExist):
		remedy = "check the name"
	case errors.Is(bare, fs.ErrPermission):
		remedy = "check who may use it"
	case errors.Is(bare, syscall.EISDIR):
		remedy = "name a file"
	case errors.Is(bare, syscall.ENOTDIR):
		remedy = "name a folder"
	case errors.Is(bare, syscall.ENOSPC):
		remedy = "make room on the disk"
	}
	before := strings.TrimSuffix(err.Error(), bare.Error())
	return fmt.Errorf("%s%s: %w: %s", before, bare.Path, bare.Err, remedy)
}

// scarcity is what to do where the system gives a process no more of something; ""
// for any other error.
func scarcity(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "allow more open files with ulimit -n"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return "allow more processes with ulimit -u and more memory with ulimit -v, or end other programs"
	}
	return ""
}

// commandOf names the command whose words could not be parsed, as far as they
// could be.
func commandOf(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "caper"
}
