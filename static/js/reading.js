// A chat with read-only access.

import { startAnnouncer } from "./announcer.js";
import { startConnection } from "./connection.js";
import { startChatMenu } from "./chat_menu.js";
import { startMessageActions } from "./message_actions.js";
import { startRatings } from "./rating.js";
import { startRuns } from "./run.js";
import { startScrolling } from "./scroll.js";
import { startSharing } from "./sharing.js";

startRuns();
startAnnouncer();
startConnection();
startRatings();
startMessageActions();
startScrolling();
startSharing();
startChatMenu();
