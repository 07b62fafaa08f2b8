// The unit tests of all rooms in one program; the tests themselves stand beside the code as *_test.cc.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
