// Package dependencies gets the packages that a request asks for into the environment
// that its run starts from. A set of packages is installed once, and kept as a layer: an
// image that is the language's own and one layer more, below /opt/dependencies.
//
//  1. Parse takes the request's entries: names and version specifiers, nothing else. The
//     order, the case and the spaces in which they were written make no difference.
//  2. Layers.Get looks the set up: by the hash of environment, image, the operator's
//     settings and entries there is a name of a layer, or not. What is known is there at once, and needs no network.
//  3. What is not known is installed, once however many ask for it: the environment's
//     installer runs in a sandbox like any other, with a network to the registry alone.
//     Its hosts are what the installer has said before, in a sandbox without a network:
//     those of the client's own configuration, and of the operator's settings. Separate has
//     taken the credentials out of these: Network signs requests to the registry in.
//  4. What the sandbox gives back is hostile: a list of packages, and an archive, which is
//     checked and written anew while it arrives (archive.go).
//  5. The layer is named by the hash of environment, image, settings, the list of what was installed
//     and the archive. Sets that come to the same have one layer, under several names.
//  6. Layers are bounded in size, number and all together. The one that was not used for
//     the longest time goes first, and never one that is in use.
//
// All that is known of layers is on the Docker daemon: names and labels of images.
// So it outlives the service, and goes with the images.
//
// Code of packages does not run while they are installed, as only prebuilt ones are
// taken, unless the operator allows builds.
package dependencies
