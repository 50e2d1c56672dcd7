package storage

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// azureAccount is where an account answers, and one way to be let in; without any, the
// identity that the machine or the environment gives is tried.
type azureAccount struct {
	url, name string
	key       string
	sas       string

	// of tests
	identity  azcore.TokenCredential
	transport policy.Transporter
}

// findAzureAccount reads the variables of the Azure CLI and of gocloud, and those that
// people of other code interpreters have set. Its errors quote none of their values.
func findAzureAccount(p parameters, getenv func(string) string) (azureAccount, error) {
	endpoint, err := p.endpoint()
	if err != nil {
		return azureAccount{}, err
	}
	if text := cmp.Or(getenv("AZURE_STORAGE_CONNECTION_STRING"), getenv("AZURE_STORAGEBLOB_CONNECTIONSTRING")); text != "" {
		return parseConnectionString(text, endpoint)
	}
	a := azureAccount{
		url:  endpoint,
		name: cmp.Or(getenv("AZURE_STORAGE_ACCOUNT_NAME"), getenv("AZURE_STORAGE_ACCOUNT")),
		key:  cmp.Or(getenv("AZURE_STORAGE_ACCOUNT_KEY"), getenv("AZURE_STORAGE_KEY")),
		sas:  strings.TrimPrefix(getenv("AZURE_STORAGE_SAS_TOKEN"), "?"),
	}
	if a.name == "" && (a.url == "" || a.key != "") {
		return azureAccount{}, errors.New("azblob: want AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or a managed identity")
	}
	if a.url == "" {
		a.url = "https://" + a.name + ".blob.core.windows.net"
	}
	a.url = strings.TrimSuffix(a.url, "/") + "/"
	return a, nil
}

// parseConnectionString reads name=value;name=value…, as the Azure portal shows it. The
// SDK's own reader does not give the parts.
func parseConnectionString(text, endpoint string) (azureAccount, error) {
	parts := map[string]string{"DefaultEndpointsProtocol": "https", "EndpointSuffix": "core.windows.net"}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ";") {
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return azureAccount{}, errors.New("azblob: AZURE_STORAGE_CONNECTION_STRING: want name=value, with semicolons between")
		}
		parts[name] = value
	}
	a := azureAccount{
		name: parts["AccountName"],
		key:  parts["AccountKey"],
		sas:  strings.TrimPrefix(parts["SharedAccessSignature"], "?"),
		url:  cmp.Or(endpoint, parts["BlobEndpoint"]),
	}
	if a.key == "" && a.sas == "" {
		return azureAccount{}, errors.New("azblob: AZURE_STORAGE_CONNECTION_STRING has neither AccountKey nor SharedAccessSignature")
	}
	if a.name == "" && (a.key != "" || parts["BlobEndpoint"] == "") {
		return azureAccount{}, errors.New("azblob: AZURE_STORAGE_CONNECTION_STRING has no AccountName")
	}
	if a.url == "" {
		a.url = fmt.Sprintf("%s://%s.blob.%s", parts["DefaultEndpointsProtocol"], a.name, parts["EndpointSuffix"])
	}
	if u, err := url.Parse(a.url); err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return azureAccount{}, errors.New("azblob: AZURE_STORAGE_CONNECTION_STRING: BlobEndpoint is no address")
	}
	a.url = strings.TrimSuffix(a.url, "/") + "/"
	return a, nil
}
