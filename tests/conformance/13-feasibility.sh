# Never or not now, and how many would fit
#: curl -s $S/apis/v1/explain/pods/default/p1/feasibility
. "$(dirname "$0")/prelude.sh"
of() { echo "/apis/v1/explain/pods/default/$1/feasibility"; }

node n1 4
node n2 2
pod never 5
becomes never refused
check "$(of never)" '.verdict.code == "NeverFits" and .emptyCluster == false and .maxCopiesEmpty == 0 and .maxCopiesNow == 0'

pod filler 3
eventually bound filler n1
pod more 1
eventually bound more
pod p1 3
becomes p1 refused
check "$(of p1)" '.verdict.code == "NotNow" and .emptyCluster and .now == false and .maxCopiesNow == 0 and .maxCopiesEmpty == 1'

# The largest pod that is said to fit now does fit.
check "$(of p1)" '.largestNow.requests.cpu != null'
pod largest "$(ask "$(of p1)" | jq -r '.largestNow.requests.cpu')"
eventually bound largest

# When there is room, the read shows how many copies fit.
delete_pod filler
eventually bound p1
check "$(of p1)" '.emptyCluster'
