// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// A setting of run is one flag. The same setting has a key in the configuration
// file (data-dir: dataDir) and a variable in the environment
// (STATUSSTORE_DATA_DIR; --socket has none). The first of flag, variable, file and
// default counts. A setting with several values is a list in the file, and has
// commas elsewhere.

// configVersion is that of the configuration file's form, in its key "version". A
// key that changes its meaning or goes away needs a new one.
const configVersion = 1

// flagOnly are the flags that are no settings: where to find the settings, what to
// do with them, and what nobody should do at each start.
var flagOnly = []string{"config", "print-config", "move-damaged-aside", "help"}

// clientVariables are the flags whose variables say where the other commands find
// the agent: exported for those, one must not move the agent's own socket.
var clientVariables = []string{"socket"}

func isSetting(f *pflag.Flag) bool { return !slices.Contains(flagOnly, f.Name) }

// keyOf is the flag's key in the configuration file.
func keyOf(f *pflag.Flag) string {
	words := strings.Split(f.Name, "-")
	for i := range words[1:] {
		words[1+i] = capital(words[1+i])
	}
	return strings.Join(words, "")
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// variableOf is the flag's variable in the environment.
func variableOf(f *pflag.Flag) string {
	return "STATUSSTORE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fillFlags gives the flags that are not on the command line their values from
// the environment and the configuration file. Any value that can't be used is a
// wrong usage, wherever it is from.
func fillFlags(flags *pflag.FlagSet, file map[string]fileValue, getenv func(string) string) error {
	unused := maps.Clone(file)
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		fromFile, inFile := file[keyOf(f)]
		delete(unused, keyOf(f))
		fromEnv := ""
		if !slices.Contains(clientVariables, f.Name) {
			fromEnv = getenv(variableOf(f))
		}
		var err error
		switch {
		case f.Changed:
		case fromEnv != "":
			if err = f.Value.Set(fromEnv); err != nil {
				err = usagef("%s=%q: %w", variableOf(f), fromEnv, wanted(f, err))
			}
		case inFile:
			err = fromFile.set(f)
		}
		failed = cmp.Or(failed, err)
	})
	if failed == nil && len(unused) > 0 {
		return usagef("configuration file: unknown key %s", strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
	}
	return failed
}

// wanted says what a flag's value has to be, in place of how parsing it went wrong.
func wanted(f *pflag.Flag, err error) error {
	switch f.Value.Type() {
	case "bool":
		return errors.New("want true or false")
	case "int", "int64", "uint16":
		return errors.New("want a whole number within bounds")
	case "float32":
		return errors.New("want a number")
	case "duration":
		return errors.New("want a duration such as 10s or 1m30s")
	default:
		return err
	}
}

// flagError is a flag on the command line with a value that can't be used.
func flagError(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := bad.GetFlag()
		return usagef("--%s: %w, got %q", f.Name, wanted(f, bad.Unwrap()), bad.GetValue())
	}
	return &usageError{err}
}

// printConfig writes the settings in the form of a configuration file.
func printConfig(w io.Writer, flags *pflag.FlagSet) error {
	var b bytes.Buffer
	var failed error
	fmt.Fprintf(&b, "version: %d\n", configVersion)
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		var value any = f.Value.String()
		switch f.Value.Type() {
		case "int", "int64", "float32", "bool":
			value = json.RawMessage(f.Value.String())
		}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			value = append([]string{}, several.GetSlice()...) // an empty list and not null
		}
		line, err := yaml.Marshal(map[string]any{keyOf(f): value})
		failed = cmp.Or(failed, err)
		b.Write(line)
	})
	if failed != nil {
		return fmt.Errorf("encode configuration: %w", failed)
	}
	return write(w, b.Bytes())
}
