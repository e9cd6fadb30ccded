// SPDX-License-Identifier: Apache-2.0

package httpapi

// maxDepth bounds how deep JSON may be nested. A pod has less than 20 levels;
// merging a patch takes time that grows with the square of its depth.
const maxDepth = 100

// checkDepth looks at brackets outside of strings; anything else that is wrong
// with the JSON is left to the decoder.
func checkDepth(data []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return badRequest("the JSON is nested deeper than %d levels", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
