// A chat with read-only access.

import { announceRuns } from "./announcer.js";
import { watch } from "./connection.js";
import { actOnMessages } from "./message_actions.js";
import { offerExports } from "./export_menu.js";
import { rate } from "./rating.js";
import { start } from "./run.js";
import { follow } from "./scroll.js";
import { tend } from "./sessions.js";
import { share } from "./sharing.js";

start();
announceRuns();
watch();
tend();
rate();
actOnMessages();
follow();
share();
offerExports();
