package reading

import "fmt"

// Empty says that there is nothing to show, as kubectl does.
func Empty(namespace string, everywhere bool) string {
	if everywhere {
		return "No resources found"
	}
	return fmt.Sprintf("No resources found in %s namespace.", namespace)
}
