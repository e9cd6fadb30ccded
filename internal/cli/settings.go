// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
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

// fileValue is what the configuration file says for a key: a plain value, or a
// list of them.
type fileValue struct {
	values []string
	list   bool
}

func (v fileValue) set(f *pflag.Flag) error {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		if err := several.Replace(v.values); err != nil {
			return usagef("configuration file: %s: %q: %w", keyOf(f), v.values, err)
		}
		return nil
	}
	if v.list {
		return usagef("configuration file: %s: want one plain value", keyOf(f))
	}
	if err := f.Value.Set(v.values[0]); err != nil {
		return usagef("configuration file: %s: %q: %w", keyOf(f), v.values[0], wanted(f, err))
	}
	return nil
}

// readConfig reads a configuration file: one flat mapping of keys to plain values
// and lists of them, with the version of its form.
func readConfig(path string) (map[string]fileValue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, usagef("configuration file %s: %w", path, err)
	}
	var values map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a float64 would lose large numbers
	if err := dec.Decode(&values); err != nil {
		return nil, usagef("configuration file %s: want a mapping of keys to values: %w", path, err)
	}
	switch version := values["version"]; version {
	case json.Number(strconv.Itoa(configVersion)):
	case nil:
		return nil, usagef("configuration file %s: version is missing; this release reads \"version: %d\"", path, configVersion)
	default:
		shown, _ := json.Marshal(version) // it was JSON before
		return nil, usagef("configuration file %s: version %s is unknown; this release reads \"version: %d\"", path, shown, configVersion)
	}
	delete(values, "version")
	config := make(map[string]fileValue, len(values))
	for key, value := range values {
		v, ok := fileValueOf(value)
		if !ok {
			return nil, usagef("configuration file %s: %s: want one plain value, or a list of them", path, key)
		}
		config[key] = v
	}
	return config, nil
}

func fileValueOf(value any) (fileValue, bool) {
	elements, list := value.([]any)
	if !list {
		elements = []any{value}
	}
	v := fileValue{list: list, values: []string{}}
	for _, e := range elements {
		switch e.(type) {
		case string, bool, json.Number:
			v.values = append(v.values, fmt.Sprint(e))
		default:
			return v, false
		}
	}
	return v, true
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

// newLogger logs to w.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	options := &slog.HandlerOptions{}
	var l slog.Level
	// The flag allows only words that are levels.
	if err := l.UnmarshalText([]byte(level)); err == nil {
		options.Level = l
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
