// Package storagetest starts the servers that the tests of clouds run against: Azurite for
// Azure Blob Storage, versitygw for Amazon S3, fake-gcs-server for Google Cloud Storage; and
// Redis, for those of limits.
//
// Each listens on a free port of the loopback interface, keeps its data in a folder of the
// test, and ends with it. scripts/stores.sh installs them; if one is missing, the test
// fails and says so.
//
//	server := storagetest.Azurite(t)
//	store, err := storage.Open(ctx, storage.Options{URL: server.URL(t), Getenv: server.Getenv})
//	server.Stop(t)  // an outage
//	server.Start(t) // on the same port, with what it had
//
// fake-gcs-server forgets its objects at a Stop, and keeps its buckets; Redis forgets all.
package storagetest
